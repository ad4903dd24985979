// BytePairs: byte-level byte-pair encoding of single pieces, made for speed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/word_table.h"

namespace weft {

/// "left right make result", the lower the rank the sooner.
struct Merge {
  std::int32_t left = 0, right = 0, result = 0;
  std::int32_t rank = 0;
};

/// (left, right) -> (rank, result), open addressing, at most half full.
class PairTable {
 public:
  static constexpr std::int32_t none = INT32_MAX;
  struct MergeResult {
    std::int32_t rank = none, result = -1;
  };
  explicit PairTable(std::span<const Merge> merges = {});
  [[nodiscard]] MergeResult find(std::int32_t left, std::int32_t right) const {
    for (std::size_t at = home(left, right);; at = (at + 1) & mask_) {
      const Merge& slot = slots_[at];
      if (slot.left == left && slot.right == right) return {slot.rank, slot.result};
      if (slot.left < 0) return {};
    }
  }

 private:
  [[nodiscard]] std::size_t home(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
                              static_cast<std::uint32_t>(right);
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> shift_) & mask_;
  }
  std::vector<Merge> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

/// Joins symbols pair by pair, lowest rank first, leftmost first among equals, until no pair has a rank.
/// Short words are scanned; from `long_word` symbols on a heap keeps it O(n log n), however hostile the word.
class Joiner {
 public:
  static constexpr std::size_t long_word = 48;
  explicit Joiner(PairTable pairs) : pairs_(std::move(pairs)) {}
  /// Replaces the symbols of a word by what is left of them; negative symbols are not allowed.
  void join(std::vector<std::int32_t>& symbols) const;
  /// The same in place, for words below `long_word`; returns how many are left.
  [[nodiscard]] std::size_t join_short(std::int32_t* symbols, std::size_t count) const;

 private:
  void join_long(std::vector<std::int32_t>& symbols) const;
  PairTable pairs_;
};

/// What a byte-level vocabulary is made of.
struct BytePairParts {
  std::vector<std::string> tokens;  // id -> bytes; an empty one cannot be made from text
  std::vector<Merge> merges;
  /// A piece that is a token as a whole is that token even where the merges would not make it
  /// (tiktoken, "ignore_merges").
  bool whole_first = false;
};

/// Const and safe for many threads.
class BytePairs {
 public:
  explicit BytePairs(const BytePairParts& parts);
  /// Appends the ids of one piece. A byte that is no token is left out, as Hugging Face does.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;
  /// The same, remembering words of several tokens in a cache that belongs to the caller.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids, WordCache& cache) const;

 private:
  void merge(std::string_view piece, std::vector<std::int32_t>& ids) const;

  Joiner joiner_;
  std::vector<std::int32_t> byte_ids_;
  WordTable words_;
};

/// Merges for a vocabulary that only ranks its tokens (tiktoken): every way to cut a token into two others.
[[nodiscard]] std::vector<Merge> merges_of_ranks(std::span<const std::string> tokens_by_rank,
                                                 std::span<const std::int32_t> ids);

}  // namespace weft
