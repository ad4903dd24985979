#include "weft/ops/blocks.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

void check_blocks(const Door& door, const Tensor& packed, const Tensor& x, const BlockCode& how) {
  if (how.bits != 8 && how.bits != 4)
    door.refuse(Kind::usage, "codes of ", how.bits, " bits are not of 8 or 4");
  if (how.block < 2 || how.block % 2 != 0)
    door.refuse(Kind::usage, "a block of ", how.block, " numbers is not of an even number of them");
  door.floats("x", x).ranked("x", x, 1, 1).contiguous("x", x);
  door.holds("packed", packed, Dtype::u8, {packed_bytes(x.elements(), how)}).contiguous("packed", packed);
}

}  // namespace

void pack_blocks_into(const Tensor& packed, const Tensor& x, const BlockCode& how) {
  check_blocks(Door("pack blocks", x), packed, x, how);
  count::pass(x, Work::other, count::multiply_add, count::traffic(packed, x));
  x.device().kernels().pack_blocks(packed, x, how);
}

void unpack_blocks_into(const Tensor& out, const Tensor& packed, const BlockCode& how) {
  check_blocks(Door("unpack blocks", out), packed, out, how);
  const std::int64_t read = how.accumulate ? out.bytes() : 0;
  count::pass(out, Work::other, count::multiply_add, count::traffic(packed, out) + read);
  out.device().kernels().unpack_blocks(out, packed, how);
}

}  // namespace weft::ops
