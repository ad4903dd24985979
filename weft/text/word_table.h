// WordTable and WordCache: from the bytes of a word to its tokens in one look.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Up to 16 bytes of a word in two registers, and a hash of all of it.
struct WordKey {
  static constexpr std::size_t most = 16;
  std::uint64_t low = 0, high = 0;

  explicit WordKey(std::string_view word) {
    if (word.size() >= 8) {
      std::memcpy(&low, word.data(), 8);
      const std::size_t rest = word.size() - 8;
      // The last eight bytes, shifted so that only what `low` does not hold is left.
      std::memcpy(&high, word.data() + rest, 8);
      high = rest == 0 ? 0 : high >> (8 * (8 - rest));
    } else if (word.size() >= 4) {
      std::uint32_t first = 0, last = 0;
      std::memcpy(&first, word.data(), 4);
      std::memcpy(&last, word.data() + word.size() - 4, 4);
      low = first | static_cast<std::uint64_t>(last) << (8 * (word.size() - 4));
    } else if (!word.empty()) {
      const auto byte = [&](std::size_t k) {
        return static_cast<std::uint64_t>(static_cast<unsigned char>(word[k])) << (8 * k);
      };
      low = byte(0) | byte(word.size() / 2) | byte(word.size() - 1);
    }
  }
  [[nodiscard]] std::uint64_t hash(std::size_t length) const {
    const std::uint64_t mixed =
        (low ^ length * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u ^ high * 0xc2b2ae3d27d4eb4fu;
    return (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93u;
  }
};

/// Words that are one token. Filled once, then only read.
class WordTable {
 public:
  explicit WordTable(std::size_t expected = 0);
  void insert(std::string_view word, std::int32_t id);
  /// The id of a word, or -1.
  [[nodiscard]] std::int32_t find(std::string_view word) const {
    return word.size() <= WordKey::most ? find_short(word) : find_long(word);
  }

 private:
  struct Slot {
    std::uint64_t low = 0, high = 0;
    std::int32_t id = -1;
    std::uint32_t length = 0;
  };
  struct LongSlot {
    std::uint64_t hash = 0;
    std::int32_t id = -1;
    std::uint32_t length = 0;
    std::size_t at = 0;  // in text_
  };
  [[nodiscard]] std::int32_t find_short(std::string_view word) const {
    const WordKey key(word);
    for (std::size_t at = key.hash(word.size()) >> shift_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.low == key.low && slot.high == key.high && slot.length == word.size()) return slot.id;
      if (slot.id < 0) return -1;
    }
  }
  [[nodiscard]] std::int32_t find_long(std::string_view word) const;

  std::vector<Slot> slots_;
  std::vector<LongSlot> long_slots_;
  std::string text_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

/// What became of words of at most 16 bytes and 10 tokens: 16384 of them, the latest of each slot. One
/// thread.
class WordCache {
 public:
  static constexpr std::size_t most_ids = 10;
  struct Entry {
    std::uint64_t low = 0, high = 0;
    std::uint32_t length = 0;  // 0: free
    std::uint32_t count = 0;
    std::int32_t ids[most_ids] = {};
  };
  WordCache() : entries_(std::size_t{1} << bits) {}
  /// The place of a word; holds() says whether it is that word's already.
  [[nodiscard]] Entry& place(const WordKey& key, std::size_t length) {
    return entries_[key.hash(length) >> (64 - bits)];
  }
  [[nodiscard]] static bool holds(const Entry& entry, const WordKey& key, std::size_t length) {
    return entry.low == key.low && entry.high == key.high && entry.length == length;
  }

 private:
  static constexpr int bits = 14;
  std::vector<Entry> entries_;
};

}  // namespace weft
