// Expressions of Jinja, from what binds least to what binds most.
#include <algorithm>
#include <array>
#include <charconv>

#include "weft/text/jinja/parse.h"

namespace weft::jinja {

namespace {

using Kinds = Expression::Kind;

void put(Expression& into, ExpressionPtr part) { into.parts.push_back(std::move(part)); }

int depth_of(const Expression& e) {
  int most = 0;
  const auto see = [&](const ExpressionPtr& part) {
    if (part != nullptr) most = std::max(most, part->depth);
  };
  for (const auto& part : e.parts) see(part);
  for (const auto& part : e.given.plain) see(part);
  for (const auto& [name, part] : e.given.named) see(part);
  see(e.given.list);
  see(e.given.dict);
  return most + 1;
}

}  // namespace

ExpressionPtr Parser::finished(Expression expression) const {
  expression.depth = depth_of(expression);
  if (expression.depth > deepest) refuse("an expression nests deeper than ", deepest, " levels");
  return std::make_unique<const Expression>(std::move(expression));
}

ExpressionPtr Parser::expression() {
  if (++depth_ > deepest) refuse("the template nests deeper than ", deepest, " levels");
  ExpressionPtr out = either();
  while (word("if")) {
    Expression pick = made(Kinds::pick);
    take();
    put(pick, std::move(out));
    put(pick, either());
    put(pick, take_word("else") ? expression() : nullptr);
    out = finished(std::move(pick));
  }
  --depth_;
  return out;
}

ExpressionPtr Parser::either() {
  ExpressionPtr left = both();
  while (word("or")) {
    Expression e = made(Kinds::either);
    take();
    put(e, std::move(left));
    put(e, both());
    left = finished(std::move(e));
  }
  return left;
}

ExpressionPtr Parser::both() {
  ExpressionPtr left = negation();
  while (word("and")) {
    Expression e = made(Kinds::both);
    take();
    put(e, std::move(left));
    put(e, negation());
    left = finished(std::move(e));
  }
  return left;
}

ExpressionPtr Parser::negation() {
  if (!word("not")) return comparison();
  if (++depth_ > deepest) refuse("the template nests deeper than ", deepest, " levels");
  Expression e = made(Kinds::negate);
  take();
  put(e, negation());
  --depth_;
  return finished(std::move(e));
}

ExpressionPtr Parser::comparison() {
  constexpr std::array<std::string_view, 6> operators{"==", "!=", "<", "<=", ">", ">="};
  ExpressionPtr first = sum();
  Expression e = made(Kinds::compare);
  put(e, std::move(first));
  while (true) {
    const bool compares =
        now().kind == TokenKind::sign && std::ranges::find(operators, now().word) != operators.end();
    const bool not_in = word("not") && ahead().kind == TokenKind::name && ahead().word == "in";
    if (!compares && !not_in && !word("in")) break;
    if (not_in) take();
    e.words.push_back(not_in ? "not in" : now().word);
    take();
    put(e, sum());
  }
  return e.words.empty() ? std::move(e.parts[0]) : finished(std::move(e));
}

ExpressionPtr Parser::sum() {
  ExpressionPtr left = joined();
  while (sign("+") || sign("-")) {
    Expression e = made(Kinds::binary);
    e.word = take().word;
    put(e, std::move(left));
    put(e, joined());
    left = finished(std::move(e));
  }
  return left;
}

ExpressionPtr Parser::joined() {
  Expression e = made(Kinds::join);
  put(e, product());
  while (take_sign("~")) put(e, product());
  return e.parts.size() == 1 ? std::move(e.parts[0]) : finished(std::move(e));
}

ExpressionPtr Parser::product() {
  ExpressionPtr left = power();
  while (sign("*") || sign("/") || sign("//") || sign("%")) {
    Expression e = made(Kinds::binary);
    e.word = take().word;
    put(e, std::move(left));
    put(e, power());
    left = finished(std::move(e));
  }
  return left;
}

ExpressionPtr Parser::power() {
  ExpressionPtr left = unary();
  while (sign("**")) {
    Expression e = made(Kinds::binary);
    e.word = take().word;
    put(e, std::move(left));
    put(e, unary());
    left = finished(std::move(e));
  }
  return left;
}

ExpressionPtr Parser::unary(bool with_filters) {
  if (++depth_ > deepest) refuse("the template nests deeper than ", deepest, " levels");
  ExpressionPtr out;
  if (sign("-") || sign("+")) {
    Expression e = made(sign("-") ? Kinds::minus : Kinds::plus);
    take();
    put(e, unary(false));
    out = finished(std::move(e));
  } else {
    out = primary();
  }
  --depth_;
  out = postfix(std::move(out));
  return with_filters ? filters(std::move(out)) : std::move(out);
}

ExpressionPtr Parser::primary() {
  if (sign("[")) return list();
  if (sign("{")) return dict();
  if (take_sign("(")) {
    ExpressionPtr out = tuple(true, true);
    expect_sign(")");
    return out;
  }
  if (now().kind != TokenKind::name) return constant();
  Expression e = made(Kinds::constant);
  e.word = take().word;
  if (e.word == "true" || e.word == "True" || e.word == "false" || e.word == "False") {
    e.constant = e.word == "true" || e.word == "True";
  } else if (e.word == "none" || e.word == "None") {
    e.constant = None{};
  } else {
    e.kind = Kinds::name;
    asked_.caller = asked_.caller || e.word == "caller";
    asked_.more = asked_.more || e.word == "varargs";
    asked_.named = asked_.named || e.word == "kwargs";
  }
  return finished(std::move(e));
}

ExpressionPtr Parser::constant() {
  Expression e = made(Kinds::constant);
  const std::string& written = now().word;
  if (now().kind == TokenKind::text) {
    std::string text;
    while (now().kind == TokenKind::text) text += take().word;
    e.constant = std::make_shared<const Text>(Text{std::move(text)});
  } else if (now().kind == TokenKind::whole) {
    std::int64_t number = 0;
    if (std::from_chars(written.data(), written.data() + written.size(), number).ec != std::errc())
      refuse(written, " is beyond 64 bits");
    e.constant = number;
    take();
  } else if (now().kind == TokenKind::real) {
    e.constant = std::strtod(written.c_str(), nullptr);
    take();
  } else {
    refuse("expected a value, found ", shown());
  }
  return finished(std::move(e));
}

bool Parser::tuple_ends() const {
  return now().kind == TokenKind::close_value || now().kind == TokenKind::close_tag || sign(")") ||
         word("recursive");
}

ExpressionPtr Parser::tuple(bool pick, bool parentheses) {
  Expression e = made(Kinds::tuple);
  bool many = false;
  while (!tuple_ends()) {
    put(e, pick ? expression() : either());
    if (!take_sign(",")) break;
    many = true;
  }
  if (many || (e.parts.empty() && parentheses)) return finished(std::move(e));
  if (e.parts.empty()) refuse("expected a value, found ", shown());
  return std::move(e.parts[0]);
}

ExpressionPtr Parser::list() {
  Expression e = made(Kinds::list);
  expect_sign("[");
  while (!sign("]")) {
    put(e, expression());
    if (!take_sign(",")) break;
  }
  expect_sign("]");
  return finished(std::move(e));
}

ExpressionPtr Parser::dict() {
  Expression e = made(Kinds::dict);
  expect_sign("{");
  while (!sign("}")) {
    put(e, expression());
    expect_sign(":");
    put(e, expression());
    if (!take_sign(",")) break;
  }
  expect_sign("}");
  return finished(std::move(e));
}

ExpressionPtr Parser::postfix(ExpressionPtr of) {
  while (true) {
    if (sign(".") || sign("[")) {
      of = subscript(std::move(of));
    } else if (sign("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

ExpressionPtr Parser::filters(ExpressionPtr of) {
  while (true) {
    if (sign("|")) {
      take();
      of = filter(std::move(of));
    } else if (word("is")) {
      of = test(std::move(of));
    } else if (sign("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

ExpressionPtr Parser::subscript(ExpressionPtr of) {
  if (sign("[")) {
    take();
    ExpressionPtr out = subscribed(std::move(of));
    if (sign(",")) refuse("weft knows no item with a comma in its brackets");
    expect_sign("]");
    return out;
  }
  take();
  Expression e = made(now().kind == TokenKind::whole ? Kinds::item : Kinds::attribute);
  put(e, std::move(of));
  if (now().kind == TokenKind::whole) {
    put(e, constant());
  } else {
    e.word = name("behind a dot");
  }
  return finished(std::move(e));
}

ExpressionPtr Parser::subscribed(ExpressionPtr of) {
  Expression e = made(Kinds::item);
  put(e, std::move(of));
  put(e, sign(":") ? nullptr : expression());
  if (!sign(":")) return finished(std::move(e));
  e.kind = Kinds::slice;
  take();
  put(e, sign(":") || sign("]") ? nullptr : expression());
  put(e, take_sign(":") && !sign("]") ? expression() : nullptr);
  return finished(std::move(e));
}

GivenArguments Parser::arguments() {
  GivenArguments out;
  expect_sign("(");
  while (!sign(")")) {
    if (take_sign("*")) {
      if (out.list != nullptr || out.dict != nullptr)
        refuse("arguments are in an order that Jinja does not have");
      out.list = expression();
    } else if (take_sign("**")) {
      if (out.dict != nullptr) refuse("arguments are in an order that Jinja does not have");
      out.dict = expression();
    } else if (now().kind == TokenKind::name && ahead().kind == TokenKind::sign && ahead().word == "=") {
      std::string key = take().word;
      take();
      out.named.emplace_back(std::move(key), expression());
    } else {
      if (out.list != nullptr || out.dict != nullptr || !out.named.empty())
        refuse("an argument without a name stands behind one that has one");
      out.plain.push_back(expression());
    }
    if (!take_sign(",")) break;
  }
  expect_sign(")");
  return out;
}

ExpressionPtr Parser::call(ExpressionPtr of) {
  Expression e = made(Kinds::call);
  put(e, std::move(of));
  e.given = arguments();
  return finished(std::move(e));
}

// Behind the |; without what it filters, it filters what its block wrote.
ExpressionPtr Parser::filter(ExpressionPtr of) {
  Expression e = made(Kinds::filter);
  put(e, std::move(of));
  e.word = name("of a filter");
  if (sign("(")) e.given = arguments();
  return finished(std::move(e));
}

ExpressionPtr Parser::test(ExpressionPtr of) {
  Expression e = made(Kinds::test);
  take();
  const bool negated = take_word("not");
  put(e, std::move(of));
  e.word = name("of a test");
  const TokenKind next = now().kind;
  const bool value = next == TokenKind::name || next == TokenKind::text || next == TokenKind::whole ||
                     next == TokenKind::real || sign("[") || sign("{");
  if (sign("(")) {
    e.given = arguments();
  } else if (value && !word("else") && !word("or") && !word("and")) {
    if (word("is")) refuse("two tests stand behind each other");
    e.given.plain.push_back(postfix(primary()));
  }
  ExpressionPtr out = finished(std::move(e));
  if (!negated) return out;
  Expression no = made(Kinds::negate);
  put(no, std::move(out));
  return finished(std::move(no));
}

}  // namespace weft::jinja
