// The texts of a JSON line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

/// Reads lines such as {"text": "…"} or {"text": ["a sentence", "another"]}. One for each thread.
class JsonTexts {
 public:
  explicit JsonTexts(std::vector<std::string> keys);
  ~JsonTexts();
  JsonTexts(JsonTexts&&) noexcept;
  JsonTexts& operator=(JsonTexts&&) noexcept;

  /// The sentences of each key: one for a text, its elements for a list. Views live until the next call.
  /// Throws with what is wrong and no place, which the caller knows.
  const std::vector<std::vector<std::string_view>>& read(std::string_view line);

 private:
  struct Parser;
  std::vector<std::string> keys_;
  std::unique_ptr<Parser> parser_;
  std::vector<std::vector<std::string_view>> texts_;
};

}  // namespace weft::data
