// Tokens of a Jinja template to its tree.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/text/jinja/tokens.h"
#include "weft/text/jinja/tree.h"

namespace weft::jinja {

/// Throws Kind::data with the template's name and line.
[[nodiscard]] Template parsed(std::string_view jinja, const std::string& name);

/// Each method reads from where the one before stopped; statements are in jinja_parse.cpp, expressions in
/// jinja_expressions.cpp.
class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string name) : tokens_(std::move(tokens)), name_(std::move(name)) {}
  Block whole();

 private:
  using Names = std::initializer_list<std::string_view>;
  // Blocks and expressions that lie in each other: whoever walks the tree recurses.
  static constexpr int deepest = 150;

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Kind::data, name_, ": line ", now().line, ": ", parts...);
  }
  [[nodiscard]] const Token& now() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  [[nodiscard]] bool sign(std::string_view what) const {
    return now().kind == TokenKind::sign && now().word == what;
  }
  [[nodiscard]] bool word(std::string_view what) const {
    return now().kind == TokenKind::name && now().word == what;
  }
  bool take_sign(std::string_view what);
  bool take_word(std::string_view what);
  void expect_sign(std::string_view what);
  void expect_word(std::string_view what);
  void expect(TokenKind kind);
  std::string name(const char* of);
  [[nodiscard]] std::string shown() const;

  Block block(Names ends);
  void body(Statement& out, std::string_view end);
  Statement statement();
  Statement choice();
  Statement loop();
  Statement assign();
  Statement macro();
  Statement call_block();
  Statement filter_block();
  Statement with_block();
  Statement output_tag();
  Statement jump(Statement::Kind kind);
  std::vector<Parameter> signature();
  void macro_body(Statement& out, std::string_view end);

  ExpressionPtr target(bool parts);
  ExpressionPtr target_part(bool parts);
  ExpressionPtr tuple(bool pick, bool parentheses = false);
  [[nodiscard]] bool tuple_ends() const;
  ExpressionPtr expression();
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr joined();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool filters = true);
  ExpressionPtr primary();
  ExpressionPtr constant();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr of);
  ExpressionPtr subscript(ExpressionPtr of);
  ExpressionPtr subscribed(ExpressionPtr of);
  ExpressionPtr call(ExpressionPtr of);
  ExpressionPtr filter(ExpressionPtr of);
  ExpressionPtr filters(ExpressionPtr of);
  ExpressionPtr test(ExpressionPtr of);
  GivenArguments arguments();
  [[nodiscard]] Expression made(Expression::Kind kind) const { return {.kind = kind, .line = now().line}; }
  ExpressionPtr finished(Expression expression) const;

  struct Asked {
    bool caller = false, more = false, named = false;
  };

  std::vector<Token> tokens_;
  std::string name_;
  std::size_t at_ = 0;
  int depth_ = 0;     // of blocks and brackets
  int loops_ = 0;     // around this place, within its macro
  Asked asked_ = {};  // by the macro around this place
};

}  // namespace weft::jinja
