#include "weft/ops/random.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

void check_block(const Door& door, const Tensor& out, const RandomBlock& block) {
  door.floats("out", out).ranked("out", out, 2, 2);
  if (block.row < 0 || block.column < 0 || block.column > block.columns - out.dim(1))
    door.refuse(Kind::shape, "a block of ", out.dim(1), " columns at [", block.row, ", ", block.column,
                "] is not inside a matrix of ", block.columns, " columns");
  std::int64_t elements = 0;
  if (__builtin_mul_overflow(block.row + out.dim(0), block.columns, &elements))
    door.refuse(Kind::shape, block.row + out.dim(0), " rows of ", block.columns,
                " columns are more than 63 bits can number");
  count::pass(out, Work::other, count::random, out.bytes());
}

}  // namespace

void random_normal_into(const Tensor& out, float mean, float deviation, const RandomBlock& block) {
  check_block(Door("random_normal", out), out, block);
  out.device().kernels().random_normal(out, mean, deviation, block);
}

void random_uniform_into(const Tensor& out, float low, float high, const RandomBlock& block) {
  check_block(Door("random_uniform", out), out, block);
  out.device().kernels().random_uniform(out, low, high, block);
}

}  // namespace weft::ops
