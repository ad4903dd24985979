// Numbers as small integers with a scale a block: whole blocks for each thread.
#include <algorithm>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {
namespace {

/// visit(first element, how many, where it is packed) for each block.
template <class Visit>
void each_block(int threads, std::int64_t elements, const BlockCode& how, const Visit& visit) {
  const std::int64_t blocks = (elements + how.block - 1) / how.block, bytes = packed_bytes(how.block, how);
  fast::in_parallel(threads, blocks, elements, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      visit(i * how.block, std::min(how.block, elements - i * how.block), i * bytes);
  });
}

}  // namespace

void FastKernels::pack_blocks(const Tensor& packed, const Tensor& x, const BlockCode& how) {
  auto* bytes = static_cast<std::uint8_t*>(packed.address());
  const auto* numbers = static_cast<const std::byte*>(x.address());
  const fast::Type type = fast::type_of(x.dtype());
  each_block(threads_, x.elements(), how, [&](std::int64_t at, std::int64_t n, std::int64_t byte) {
    loops_.blocks.pack(bytes + byte, {numbers + at * size_of(x.dtype()), type}, how.bits, n);
  });
}

void FastKernels::unpack_blocks(const Tensor& out, const Tensor& packed, const BlockCode& how) {
  const auto* bytes = static_cast<const std::uint8_t*>(packed.address());
  auto* numbers = static_cast<std::byte*>(out.address());
  const fast::Type type = fast::type_of(out.dtype());
  const auto unpack = how.accumulate ? loops_.blocks.add_unpacked : loops_.blocks.unpack;
  each_block(threads_, out.elements(), how, [&](std::int64_t at, std::int64_t n, std::int64_t byte) {
    unpack({numbers + at * size_of(out.dtype()), type, false}, bytes + byte, how.bits, n);
  });
}

}  // namespace weft
