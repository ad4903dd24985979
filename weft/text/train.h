// Training a byte-level BPE: from counts of words to merges, and the files that hold them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/split.h"
#include "weft/text/word_counts.h"

namespace weft {

struct TrainBpeOptions {
  std::int64_t vocabulary = 32000;                    // special tokens included
  std::int64_t min_frequency = 2;                     // a pair seen less often is not merged
  std::vector<std::string> special{"<|endoftext|>"};  // the last ids, the first of them is eod
};

/// A vocabulary in the byte alphabet: 256 bytes, then merges in order, then special tokens.
struct TrainedBpe {
  std::vector<std::string> tokens;
  std::vector<std::pair<std::string, std::string>> merges;
  std::string pattern;
  std::vector<std::string> special;
};

/// Calls `each` with every text of a part; called from several threads at once, for different parts.
using TextsOf = std::function<void(std::int64_t part, const std::function<void(std::string_view)>& each)>;
[[nodiscard]] WordCounts count_words(std::int64_t parts, const TextsOf& texts, std::string_view pattern,
                                     int threads);

/// Merges the most frequent pair again and again. Among pairs as frequent as each other the one with the
/// smaller ids (left, then right) wins, as in Hugging Face's trainer, so the result depends on the counts
/// only: not on the order of the texts, nor on the threads. `told` hears how many tokens there are now and
/// then.
[[nodiscard]] TrainedBpe train_bpe(const WordCounts& words, std::string_view pattern,
                                   const TrainBpeOptions& options,
                                   const std::function<void(std::int64_t)>& told = {});

/// Cuts a text into parts of about `about` bytes, at line ends where no known pattern can see the cut. Where
/// that is depends on the text alone.
[[nodiscard]] std::vector<ByteRange> parts_of(std::string_view text, std::size_t about);

[[nodiscard]] std::string vocab_json(const TrainedBpe& bpe);
[[nodiscard]] std::string merges_txt(const TrainedBpe& bpe);
[[nodiscard]] std::string tokenizer_json(const TrainedBpe& bpe);

}  // namespace weft
