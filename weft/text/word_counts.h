// WordCounts: how often each piece of a corpus occurs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/split.h"

namespace weft {

class WordCounts {
 public:
  WordCounts();
  void add(std::string_view word, std::int64_t times = 1);
  void add(const WordCounts& other);
  /// Adds the pieces of a text.
  void add_text(std::string_view utf8, const Splitter& splitter);

  [[nodiscard]] std::size_t size() const { return words_.size(); }
  [[nodiscard]] std::string_view word(std::size_t k) const {
    return {text_.data() + words_[k].at, words_[k].length};
  }
  [[nodiscard]] std::int64_t times(std::size_t k) const { return words_[k].times; }

 private:
  struct Word {
    std::uint64_t hash = 0;
    std::size_t at = 0;
    std::int64_t times = 0;
    std::uint32_t length = 0;
  };
  void grow();
  std::vector<Word> words_;
  std::vector<std::uint32_t> slots_;  // index into words_ plus one; 0 is free
  std::string text_;
};

}  // namespace weft
