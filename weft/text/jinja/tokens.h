// A Jinja template cut into what its parser reads. Blanks around tags go as transformers has them go:
// trim_blocks and lstrip_blocks, - and +.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::jinja {

enum class TokenKind {
  data,
  open_value,
  close_value,
  open_tag,
  close_tag,
  name,
  text,
  whole,
  real,
  sign,
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string word;  // as it is written; of a text, what it means
  int line = 1;
};

/// Ends in a token of the kind `end`. Throws Kind::data with the template's name and the line.
[[nodiscard]] std::vector<Token> tokens_of(std::string_view jinja, const std::string& name);

}  // namespace weft::jinja
