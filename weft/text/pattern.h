// Pattern: {"String": …} or {"Regex": …} of a tokenizer.json.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/split.h"

namespace weft {

class Pattern {
 public:
  /// Matches this text itself.
  static Pattern literal(std::string text);
  static Pattern regex(const std::string& expression);
  [[nodiscard]] std::vector<ByteRange> matches(std::string_view text) const;

 private:
  std::string literal_;
  std::shared_ptr<const Splitter> regex_;  // shared: a pattern is a value
};

/// The pattern under "pattern".
[[nodiscard]] Pattern read_pattern(const nlohmann::json& spec, std::string_view who);
/// The expression, where "pattern" is one; empty for a literal.
[[nodiscard]] std::string regex_of(const nlohmann::json& spec);

}  // namespace weft
