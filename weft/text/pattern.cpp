#include "weft/text/pattern.h"

#include "weft/base/error.h"
#include "weft/text/json.h"
#include "weft/text/unicode.h"

namespace weft {
namespace {

/// Where an empty text is found: before every character and behind the last one, if there is any.
std::vector<ByteRange> between_characters(std::string_view text) {
  std::vector<ByteRange> found;
  for (std::size_t at = 0; at < text.size(); at += unicode::rune_at(text, at).bytes)
    found.push_back({at, at});
  if (!text.empty()) found.push_back({text.size(), text.size()});
  return found;
}

}  // namespace

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Pattern Pattern::regex(const std::string& expression) {
  Pattern pattern;
  pattern.regex_ = make_splitter(expression, Dialect::oniguruma, EmptyMatches::told);
  return pattern;
}

std::vector<ByteRange> Pattern::matches(std::string_view text) const {
  if (regex_ != nullptr) return regex_->all(text);
  std::vector<ByteRange> found;
  if (literal_.empty()) return between_characters(text);
  for (auto at = text.find(literal_); at != std::string_view::npos;
       at = text.find(literal_, at + literal_.size())) {
    found.push_back({at, at + literal_.size()});
  }
  return found;
}

Pattern read_pattern(const nlohmann::json& spec, std::string_view who) {
  const auto pattern = spec.find("pattern");
  if (pattern != spec.end() && pattern->is_object() && pattern->contains("Regex")) {
    return Pattern::regex(text_field(*pattern, "Regex", who));
  }
  if (pattern != spec.end() && pattern->is_object())
    return Pattern::literal(text_field(*pattern, "String", who));
  // Files of early versions hold the text itself.
  return Pattern::literal(text_field(spec, "pattern", who));
}

std::string regex_of(const nlohmann::json& spec) {
  const auto pattern = spec.find("pattern");
  if (pattern == spec.end() || !pattern->is_object() || !pattern->contains("Regex")) return {};
  return text_field(*pattern, "Regex", "pattern");
}

}  // namespace weft
