#include "weft/text/word_table.h"

#include <xxhash.h>

#include <bit>

namespace weft {

WordTable::WordTable(std::size_t expected) {
  const std::size_t slots = std::bit_ceil(expected * 2 + 16);
  slots_.resize(slots);
  long_slots_.resize(slots);
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
}

void WordTable::insert(std::string_view word, std::int32_t id) {
  if (word.empty() || find(word) >= 0) return;
  if (word.size() <= WordKey::most) {
    const WordKey key(word);
    std::size_t at = key.hash(word.size()) >> shift_;
    while (slots_[at].id >= 0) at = (at + 1) & mask_;
    slots_[at] = {key.low, key.high, id, static_cast<std::uint32_t>(word.size())};
    return;
  }
  const std::uint64_t hash = XXH3_64bits(word.data(), word.size());
  std::size_t at = hash >> shift_;
  while (long_slots_[at].id >= 0) at = (at + 1) & mask_;
  long_slots_[at] = {hash, id, static_cast<std::uint32_t>(word.size()), text_.size()};
  text_.append(word);
}

std::int32_t WordTable::find_long(std::string_view word) const {
  const std::uint64_t hash = XXH3_64bits(word.data(), word.size());
  for (std::size_t at = hash >> shift_;; at = (at + 1) & mask_) {
    const LongSlot& slot = long_slots_[at];
    if (slot.id < 0) return -1;
    if (slot.hash == hash && slot.length == word.size() &&
        std::memcmp(text_.data() + slot.at, word.data(), word.size()) == 0) {
      return slot.id;
    }
  }
}

}  // namespace weft
