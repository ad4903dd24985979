// AddedTokens: tokens that are looked for in the text itself, before anything is cut or merged.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// With the meanings Hugging Face gives these words.
struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool special = true;       // left out where a decoder is asked to
  bool single_word = false;  // only between characters that are no word's
  bool lstrip = false;       // takes the white space on its left with it
  bool rstrip = false;
  bool normalized = false;  // looked for in the normalized text, by its normalized content

  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

/// Finds the leftmost token, the longest among those that start there.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);
  [[nodiscard]] bool empty() const { return tokens_.empty(); }

  /// A part of a text: an added token, or (id -1) what lies between two.
  struct TextPart {
    std::size_t begin = 0, end = 0;
    std::int32_t id = -1;
  };
  void split(std::string_view text, std::vector<TextPart>& parts) const;

 private:
  struct TokenMatch {
    std::size_t begin = 0, end = 0;
    std::int32_t token = -1;
  };
  struct Node {
    std::map<unsigned char, std::uint32_t> next;
    std::int32_t token = -1;
  };
  [[nodiscard]] TokenMatch find(std::string_view text, std::size_t from) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> starts_{};
};

}  // namespace weft
