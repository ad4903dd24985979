// Parts travel as [rank, half, steps, b, heads, d]; placing them puts the chunks of a sequence back in order.
#include "weft/nn/head_trade.h"

#include <vector>

#include "weft/base/number.h"
#include "weft/nn/context_parts.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

/// x as [s, b, g, ...] with other steps and heads.
Shape resized(Dims x, std::int64_t steps, std::int64_t heads) {
  x[0] = steps;
  x[2] = heads;
  return Shape(x);
}

struct ChunkRows {
  std::int64_t from, count;
};
/// work(rank, where in that rank's part, where in the sequence)
template <class Work>
void each_chunk(std::int64_t ranks, std::int64_t chunk, const Work& work) {
  const Zigzag places{int(ranks), chunk};
  for (int rank = 0; rank < int(ranks); ++rank)
    for (const int half : {0, 1}) work(rank, ChunkRows{half * chunk, chunk}, places.start(rank, half));
}

}  // namespace

Tensor Trade::to_whole(const Tensor& x) const {
  const std::int64_t part = exact(x.dim(2), ranks_);
  const Tensor out = empty_parts(x, x.dim(0), part);
  for (std::int64_t r = 0; r < ranks_; ++r) ops::copy_into(out.at(0, r), x.slice(2, r * part, part));
  const Tensor in = exchanged(out);
  const Tensor whole = empty(x.device(), resized(x.shape(), x.dim(0) * ranks_, part), x.dtype());
  each_chunk(ranks_, x.dim(0) / 2, [&](int rank, const ChunkRows& in_rank, std::int64_t at) {
    ops::copy_into(whole.slice(0, at, in_rank.count), in.at(0, rank).slice(0, in_rank.from, in_rank.count));
  });
  return whole;
}

void Trade::to_steps(const Tensor& into, const Tensor& x) const {
  const std::int64_t part = x.dim(2);
  const Tensor out = empty_parts(x, x.dim(0) / ranks_, part);
  each_chunk(ranks_, x.dim(0) / ranks_ / 2, [&](int rank, const ChunkRows& in_rank, std::int64_t at) {
    ops::copy_into(out.at(0, rank).slice(0, in_rank.from, in_rank.count), x.slice(0, at, in_rank.count));
  });
  const Tensor in = exchanged(out);
  for (std::int64_t r = 0; r < ranks_; ++r) ops::copy_into(into.slice(2, r * part, part), in.at(0, r));
}

Tensor Trade::whole_segments(const Tensor& mine) const {
  if (!mine) return {};
  const Tensor all = empty(mine.device(), {ranks_ * mine.dim(0), mine.dim(1)}, mine.dtype());
  circle_.all_gather(all, ops::contiguous(mine)).wait();
  const Tensor parts = all.split(0, {ranks_, mine.dim(0)});
  const Tensor whole = empty(mine.device(), {mine.dim(0), ranks_ * mine.dim(1)}, mine.dtype());
  each_chunk(ranks_, mine.dim(1) / 2, [&](int rank, const ChunkRows& in_rank, std::int64_t at) {
    ops::copy_into(whole.slice(1, at, in_rank.count),
                   parts.at(0, rank).slice(1, in_rank.from, in_rank.count));
  });
  return whole;
}

/// [c, steps, b, heads, ...]
Tensor Trade::empty_parts(const Tensor& x, std::int64_t steps, std::int64_t heads) const {
  Dims dims{ranks_};
  const Shape part = resized(x.shape(), steps, heads);
  for (const std::int64_t n : part.all()) dims.push_back(n);
  return empty(x.device(), Shape(dims), x.dtype());
}

Tensor Trade::exchanged(const Tensor& out) const {
  const Tensor in = empty_like(out);
  const std::vector<std::int64_t> rows(std::size_t(ranks_), 1);
  circle_.all_to_all(in, out, rows, rows).wait();
  return in;
}

}  // namespace weft
