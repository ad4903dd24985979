// Chunks go home to their places in the sequence, and back.
#include "weft/nn/token_cut.h"

#include "weft/base/number.h"
#include "weft/nn/context_parts.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

Tensor with_steps(const Tensor& x, std::int64_t steps) {
  Dims dims = x.shape();
  dims[0] = steps;
  return empty(x.device(), Shape(dims), x.dtype());
}

/// work(rank, half, where the chunk stands in the sequence)
template <class Work>
void each_chunk(const Zigzag& places, const Work& work) {
  for (int rank = 0; rank < places.ranks; ++rank)
    for (const int half : {0, 1}) work(rank, half, places.start(rank, half));
}

Tensor tree(const Tensor& parts, std::int64_t from, std::int64_t end) {
  const Tensor sum = parts.at(0, from);
  if (end - from == 1) return sum;
  const std::int64_t middle = from + (end - from + 1) / 2;
  ops::add_into(sum, tree(parts, from, middle), tree(parts, middle, end));
  return sum;
}

}  // namespace

Tensor TokenCut::whole(const Tensor& x) const {
  if (!cut()) return x;
  const std::int64_t steps = x.dim(0);
  const Tensor gathered = with_steps(x, steps * ranks());
  circle_->all_gather(gathered, ops::contiguous(x)).wait();
  const Tensor out = with_steps(x, steps * ranks());
  const std::int64_t chunk = exact(steps, std::int64_t{2});
  each_chunk({ranks(), chunk}, [&](int rank, int half, std::int64_t at) {
    ops::copy_into(out.slice(0, at, chunk), gathered.slice(0, rank * steps + half * chunk, chunk));
  });
  return out;
}

Tensor TokenCut::here(const Tensor& x) const {
  if (!cut()) return x;
  const std::int64_t steps = exact(x.dim(0), std::int64_t{ranks()});
  const Zigzag places{ranks(), exact(steps, std::int64_t{2})};
  const Tensor out = with_steps(x, steps);
  for (const int half : {0, 1})
    ops::copy_into(out.slice(0, half * places.chunk, places.chunk),
                   x.slice(0, places.start(rank(), half), places.chunk));
  return out;
}

Share TokenCut::share(std::int64_t n) const {
  const std::int64_t from = n * rank() / ranks();
  return {from, n * (rank() + 1) / ranks() - from};
}

std::int64_t pieces_of(std::int64_t steps) {
  std::int64_t pieces = 1;
  while (pieces < most_pieces && steps % (2 * pieces) == 0) pieces *= 2;
  return pieces;
}

Tensor added_as_tree(const Tensor& parts) { return tree(parts, 0, parts.dim(0)); }

}  // namespace weft
