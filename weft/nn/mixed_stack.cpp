// Bump allocation in chunks that are never given back before the end.
#include "weft/nn/mixed_stack.h"

#include <algorithm>
#include <functional>

namespace weft {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

}  // namespace

void* MixedStack::room(std::size_t size, std::size_t align) {
  for (;; ++chunk_) {
    if (chunk_ == chunks_.size()) {
      const std::size_t bytes = std::max(chunk_bytes, size);
      chunks_.push_back({std::make_unique<std::byte[]>(bytes), bytes, 0});
    }
    Chunk& chunk = chunks_[chunk_];
    const std::size_t start = (chunk.used + align - 1) / align * align;
    if (start + size <= chunk.size) {
      chunk.used = start + size;
      return chunk.memory.get() + start;
    }
  }
}

// What was put away last lies last, so taking it back is lowering the mark.
void MixedStack::give_back(void* at) {
  const auto* byte = static_cast<std::byte*>(at);
  const auto holds = [byte](const Chunk& chunk) {
    return !std::less<>{}(byte, chunk.memory.get()) && std::less<>{}(byte, chunk.memory.get() + chunk.size);
  };
  while (!holds(chunks_[chunk_])) chunks_[chunk_--].used = 0;
  chunks_[chunk_].used = std::size_t(byte - chunks_[chunk_].memory.get());
}

void MixedStack::clear() {
  while (!entries_.empty()) {
    entries_.back().words->destroy(entries_.back().at);
    entries_.pop_back();
  }
  for (Chunk& chunk : chunks_) chunk.used = 0;
  chunk_ = 0;
}

}  // namespace weft
