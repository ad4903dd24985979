#include "weft/text/word_counts.h"

#include <xxhash.h>

#include "weft/text/unicode.h"

namespace weft {

WordCounts::WordCounts() : slots_(1 << 12) {}

void WordCounts::add(std::string_view word, std::int64_t times) {
  const std::uint64_t hash = XXH3_64bits(word.data(), word.size());
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    if (slots_[at] == 0) {
      words_.push_back({hash, text_.size(), times, static_cast<std::uint32_t>(word.size())});
      text_.append(word);
      slots_[at] = static_cast<std::uint32_t>(words_.size());
      if (words_.size() * 2 > slots_.size()) grow();
      return;
    }
    Word& known = words_[slots_[at] - 1];
    if (known.hash == hash && std::string_view(text_.data() + known.at, known.length) == word) {
      known.times += times;
      return;
    }
  }
}

void WordCounts::add(const WordCounts& other) {
  for (std::size_t k = 0; k < other.size(); ++k) add(other.word(k), other.times(k));
}

void WordCounts::add_text(std::string_view utf8, const Splitter& splitter) {
  std::string repaired;
  if (!unicode::valid(utf8)) {
    repaired = unicode::repaired(utf8);
    utf8 = repaired;
  }
  constexpr std::size_t batch = 512;
  std::vector<ByteRange> pieces;
  std::size_t done = 0;
  for (std::size_t at = 0; at < utf8.size();) {
    pieces.clear();
    at = splitter.split(utf8, at, batch, pieces);
    for (const ByteRange& piece : pieces) {
      if (piece.begin > done) add(utf8.substr(done, piece.begin - done));
      add(utf8.substr(piece.begin, piece.end - piece.begin));
      done = piece.end;
    }
  }
  if (done < utf8.size()) add(utf8.substr(done));
}

void WordCounts::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t k = 0; k < words_.size(); ++k) {
    std::size_t at = words_[k].hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<std::uint32_t>(k + 1);
  }
}

}  // namespace weft
