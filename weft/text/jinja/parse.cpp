#include "weft/text/jinja/parse.h"

#include <algorithm>

#include "weft/base/format.h"

namespace weft::jinja {

namespace {

using Tags = Statement::Kind;

}  // namespace

bool Parser::take_sign(std::string_view what) {
  if (!sign(what)) return false;
  take();
  return true;
}

bool Parser::take_word(std::string_view what) {
  if (!word(what)) return false;
  take();
  return true;
}

std::string Parser::shown() const {
  switch (now().kind) {
    case TokenKind::end:
      return "the template's end";
    case TokenKind::data:
      return "text";
    case TokenKind::open_tag:
      return "{%";
    case TokenKind::open_value:
      return "{{";
    case TokenKind::close_tag:
      return "%}";
    case TokenKind::close_value:
      return "}}";
    default:
      return "'" + now().word + "'";
  }
}

void Parser::expect_sign(std::string_view what) {
  if (!take_sign(what)) refuse("expected '", what, "', found ", shown());
}

void Parser::expect_word(std::string_view what) {
  if (!take_word(what)) refuse("expected '", what, "', found ", shown());
}

void Parser::expect(TokenKind kind) {
  if (now().kind != kind)
    refuse("expected ", kind == TokenKind::close_tag ? "%}" : "}}", ", found ", shown());
  take();
}

std::string Parser::name(const char* of) {
  if (now().kind != TokenKind::name) refuse("expected a name ", of, ", found ", shown());
  return take().word;
}

Block Parser::whole() { return block({}); }

// Up to one of the tags `ends`, behind the open of that tag; without such, to the template's end.
Block Parser::block(Names ends) {
  if (++depth_ > deepest) refuse("the template nests deeper than ", deepest, " levels");
  Block out;
  while (now().kind != TokenKind::end) {
    const int line = now().line;
    if (now().kind == TokenKind::data) {
      out.push_back({.kind = Tags::data, .line = line, .word = take().word});
    } else if (now().kind == TokenKind::open_value) {
      take();
      out.push_back({.kind = Tags::output, .line = line, .value = tuple(true)});
      expect(TokenKind::close_value);
    } else {
      take();
      if (std::ranges::any_of(ends, [&](std::string_view end) { return word(end); })) {
        --depth_;
        return out;
      }
      out.push_back(statement());
      out.back().line = line;
      expect(TokenKind::close_tag);
    }
  }
  if (ends.size() > 0)
    refuse("the template ends where {% ", join(std::vector(ends), " %} or {% "), " %} was expected");
  --depth_;
  return out;
}

void Parser::body(Statement& out, std::string_view end) {
  take_sign(":");
  expect(TokenKind::close_tag);
  out.body = block({end});
  take();
}

Statement Parser::statement() {
  if (word("if")) return choice();
  if (word("for")) return loop();
  if (word("set")) return assign();
  if (word("macro")) return macro();
  if (word("call")) return call_block();
  if (word("filter")) return filter_block();
  if (word("with")) return with_block();
  if (word("print")) return output_tag();
  if (word("break")) return jump(Tags::leave);
  if (word("continue")) return jump(Tags::next);
  if (take_word("generation")) {
    Statement out{.kind = Tags::generation};
    const int outer = std::exchange(loops_, 0);
    body(out, "endgeneration");
    loops_ = outer;
    return out;
  }
  for (const char* other :
       {"include", "import", "from", "extends", "block", "autoescape", "trans", "do", "debug"})
    if (word(other)) refuse("weft has no {% ", other, " %}");
  refuse("expected a tag that Jinja has, found ", shown());
}

Statement Parser::choice() {
  Statement out{.kind = Tags::choice};
  while (take_word("if") || take_word("elif")) {
    Branch branch{.test = tuple(false), .body = {}};
    take_sign(":");
    expect(TokenKind::close_tag);
    branch.body = block({"elif", "else", "endif"});
    out.branches.push_back(std::move(branch));
  }
  if (take_word("else")) {
    take_sign(":");
    expect(TokenKind::close_tag);
    out.otherwise = block({"endif"});
  }
  take();
  return out;
}

Statement Parser::loop() {
  Statement out{.kind = Tags::loop};
  take();
  out.target = target(false);
  expect_word("in");
  out.value = tuple(false);
  if (take_word("if")) out.test = expression();
  if (word("recursive")) refuse("weft has no loop that is recursive");
  take_sign(":");
  expect(TokenKind::close_tag);
  ++loops_;
  out.body = block({"endfor", "else"});
  --loops_;
  if (take().word == "endfor") return out;
  take_sign(":");
  expect(TokenKind::close_tag);
  out.otherwise = block({"endfor"});
  take();
  return out;
}

Statement Parser::assign() {
  Statement out{.kind = Tags::assign};
  take();
  out.target = target(true);
  if (take_sign("=")) {
    out.value = tuple(true);
    return out;
  }
  out.kind = Tags::capture;
  out.value = finished(made(Expression::Kind::body));
  while (take_sign("|")) out.value = filter(std::move(out.value));
  const int outer = std::exchange(loops_, 0);
  body(out, "endset");
  loops_ = outer;
  return out;
}

std::vector<Parameter> Parser::signature() {
  std::vector<Parameter> out;
  expect_sign("(");
  while (!sign(")")) {
    Parameter parameter{.name = name("of a parameter"), .otherwise = {}};
    if (take_sign("=")) {
      parameter.otherwise = expression();
    } else if (!out.empty() && out.back().otherwise != nullptr) {
      refuse("'", parameter.name, "' needs a value, as the parameter before it has one");
    }
    out.push_back(std::move(parameter));
    if (!take_sign(",")) break;
  }
  expect_sign(")");
  return out;
}

// A macro is left by its end alone, whatever loops are around it.
void Parser::macro_body(Statement& out, std::string_view end) {
  const Asked outer = std::exchange(asked_, {});
  const int loops = std::exchange(loops_, 0);
  body(out, end);
  out.asks_caller = asked_.caller;
  out.asks_more = asked_.more;
  out.asks_named = asked_.named;
  asked_ = outer;
  loops_ = loops;
}

Statement Parser::macro() {
  Statement out{.kind = Tags::macro};
  take();
  out.word = name("of a macro");
  out.parameters = signature();
  macro_body(out, "endmacro");
  return out;
}

Statement Parser::call_block() {
  Statement out{.kind = Tags::call, .word = "caller"};
  take();
  if (sign("(")) out.parameters = signature();
  out.value = expression();
  if (out.value->kind != Expression::Kind::call) refuse("{% call %} without a call");
  macro_body(out, "endcall");
  return out;
}

Statement Parser::filter_block() {
  Statement out{.kind = Tags::filter};
  take();
  out.value = filter(finished(made(Expression::Kind::body)));
  while (take_sign("|")) out.value = filter(std::move(out.value));
  const int outer = std::exchange(loops_, 0);
  body(out, "endfilter");
  loops_ = outer;
  return out;
}

Statement Parser::with_block() {
  Statement out{.kind = Tags::with};
  take();
  while (now().kind != TokenKind::close_tag) {
    Parameter one{.name = name("behind {% with"), .otherwise = {}};
    expect_sign("=");
    one.otherwise = expression();
    out.parameters.push_back(std::move(one));
    if (!take_sign(",")) break;
  }
  body(out, "endwith");
  return out;
}

Statement Parser::output_tag() {
  take();
  Statement out{.kind = Tags::output, .value = expression()};
  if (sign(",")) refuse("weft has no {% print %} with a comma");
  return out;
}

Statement Parser::jump(Tags kind) {
  if (loops_ == 0) refuse("{% ", now().word, " %} outside of a loop");
  take();
  return {.kind = kind};
}

ExpressionPtr Parser::target_part(bool parts) {
  if (++depth_ > deepest) refuse("the template nests deeper than ", deepest, " levels");
  ExpressionPtr out;
  if (take_sign("(")) {
    out = target(parts);
    expect_sign(")");
  } else {
    Expression e = made(Expression::Kind::name);
    e.word = name("to set");
    for (const char* fixed : {"true", "false", "none", "True", "False", "None"})
      if (e.word == fixed) refuse("'", fixed, "' cannot be set");
    out = finished(std::move(e));
    if (parts && take_sign(".")) {
      Expression part = made(Expression::Kind::attribute);
      part.word = name("behind a dot");
      part.parts.push_back(std::move(out));
      out = finished(std::move(part));
    }
  }
  --depth_;
  return out;
}

// A name, names with commas between, or (where `parts` may be set) a part of a namespace.
ExpressionPtr Parser::target(bool parts) {
  Expression e = made(Expression::Kind::tuple);
  bool many = false;
  while (!tuple_ends() && !word("in")) {
    e.parts.push_back(target_part(parts));
    if (!take_sign(",")) break;
    many = true;
  }
  if (e.parts.empty()) refuse("expected a name to set, found ", shown());
  return many ? finished(std::move(e)) : std::move(e.parts[0]);
}

Template parsed(std::string_view jinja, const std::string& name) {
  return {.name = name, .body = Parser(tokens_of(jinja, name), name).whole()};
}

}  // namespace weft::jinja
