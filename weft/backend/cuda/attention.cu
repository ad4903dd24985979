// Attention of any type, mask and width, forward: a query a warp, 32 keys at a time, no scores in memory.
//
//   m' = max(m, s),  o' = o exp(m - m') + sum of exp(s - m') kept v,  l' = l exp(m - m') + sum of exp(s - m')
#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_tiles.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/reduce.h"

namespace weft {
namespace {

using namespace cuda;

constexpr int widest = 256, warps = 8;

struct Forward {
  Attend attend;
  Heads o;
  Rows lse, greatest;  // [b, n, sq], an element a row; greatest may be without data
  std::int64_t queries;
};

struct OfWarp {
  float q[widest], p[32];
};
struct Shared {
  OfWarp of[warps];
};

template <bool tells>
__device__ __forceinline__ void attend_queries(const Forward& job) {
  const Attend& a = job.attend;
  const std::int64_t query = std::int64_t(blockIdx.x) * warps + threadIdx.x / 32;
  if (query >= job.queries) return;
  const int lane = int(threadIdx.x) % 32;
  auto& mine = gpu::shared<Shared>().of[threadIdx.x / 32];
  Pair at = query_place(a, query);
  const std::int64_t q = a.q.at(at.i, at.b, at.g, at.r);
  for (int c = lane; c < widest; c += 32) mine.q[c] = c < a.q.one.width ? get(a.q.one, q + c) * a.scale : 0;
  __syncwarp();
  float o[widest / 32] = {}, max = -INFINITY, sum = 0;
  const int last = a.last_key(at.i);
  for (int first = a.first_key(at.i); first < last; first += 32) {
    at.j = first + lane;
    float s = -INFINITY;
    if (a.sees(at)) s = a.finished(at, dot(a.k.one, a.k.at(at.j, at.b, at.g, 0), mine.q));
    const float greater = Greater{}(max, over_warp(s, Greater{}));
    if (greater == -INFINITY) continue;  // the same for the whole warp
    const float shrink = expf(max - greater), p = s == -INFINITY ? 0 : expf(s - greater);
    max = greater;
    sum = sum * shrink + over_warp(p, Plus{});
    mine.p[lane] = p == 0 ? 0 : p * a.kept(at);
    __syncwarp();
#pragma unroll
    for (int c = 0; c < widest / 32; ++c) o[c] *= shrink;
    const int keys = last - first < 32 ? last - first : 32;
    for (int key = 0; key < keys; ++key) {
      const std::int64_t v = a.v.at(first + key, at.b, at.g, 0);
#pragma unroll
      for (int c = 0; c < widest / 32; ++c)
        if (c * 32 + lane < a.v.one.width) o[c] += mine.p[key] * get(a.v.one, v + c * 32 + lane);
    }
    __syncwarp();
  }
  const float share = sum == 0 ? 0 : 1 / sum;
  const std::int64_t to = job.o.at(at.i, at.b, at.g, at.r);
#pragma unroll
  for (int c = 0; c < widest / 32; ++c)
    if (c * 32 + lane < a.v.one.width) put(job.o.one, to + c * 32 + lane, o[c] * share);
  if (lane != 0) return;
  put(job.lse, start_of(job.lse, query), sum == 0 ? -INFINITY : max + logf(sum));
  if constexpr (tells) put(job.greatest, start_of(job.greatest, query), greatest_of(max, sum));
}

__global__ void __launch_bounds__(32 * warps) forward(Forward job) { attend_queries<false>(job); }
/// And the greatest scores: registers for three blocks, which the other has on some GPUs, would be too few.
__global__ void __launch_bounds__(32 * warps, 2) forward_telling(Forward job) { attend_queries<true>(job); }

/// A head a block; rows [b, n, s] of elements.
struct Raise {
  Rows greatest, rows;
  std::int64_t heads, b, s;
};

__global__ void __launch_bounds__(256) raise(Raise job) {
  auto& scratch = gpu::shared<Scratch>();
  const std::int64_t head = blockIdx.x, place = start_of(job.greatest, head);
  float max = get(job.greatest, place);
  for (std::int64_t i = threadIdx.x; i < job.b * job.s; i += blockDim.x) {
    const std::int64_t row = (i / job.s * job.heads + head) * job.s + i % job.s;
    max = Greater{}(get(job.rows, start_of(job.rows, row)), max);
  }
  max = over_block(max, scratch, -INFINITY, Greater{});
  if (threadIdx.x == 0) put(job.greatest, place, max);
}

Rows elements_of(const Tensor& x) { return x ? for_every_column(x, 1) : Rows{}; }

// lse = log(e^a + e^b),  o = e^(a - lse) o_a + e^(b - lse) o_b
struct Merge {
  Heads o, part;
  Rows lse, part_lse;
  std::int64_t queries, sq, groups, heads;
};

__global__ void __launch_bounds__(32 * warps) merge(Merge job) {
  const std::int64_t query = std::int64_t(blockIdx.x) * warps + threadIdx.x / 32;
  if (query >= job.queries) return;
  const std::int64_t i = query % job.sq, head = query / job.sq;
  const std::int64_t r = head % job.heads, g = head / job.heads % job.groups,
                     b = head / job.heads / job.groups;
  const std::int64_t place = start_of(job.lse, query);
  const float x = get(job.lse, place), y = get(job.part_lse, start_of(job.part_lse, query));
  const float max = Greater{}(x, y);
  const float lse = max == -INFINITY ? max : max + logf(expf(x - max) + expf(y - max));
  const float of_x = x == -INFINITY ? 0 : expf(x - lse), of_y = y == -INFINITY ? 0 : expf(y - lse);
  const std::int64_t to = job.o.at(i, b, g, r), from = job.part.at(i, b, g, r);
  for (std::int64_t c = threadIdx.x % 32; c < job.o.one.width; c += 32)
    put(job.o.one, to + c, of_x * get(job.o.one, to + c) + of_y * get(job.part.one, from + c));
  __syncwarp();
  if (threadIdx.x % 32 == 0) put(job.lse, place, lse);
}

}  // namespace

void CudaKernels::attention(const AttentionOut& out, const Attended& in, const AttentionArgs& how) {
  if (in.q.dim(-1) > widest || in.v.dim(-1) > widest)
    fail(Kind::device, "attention: heads of ", std::max(in.q.dim(-1), in.v.dim(-1)), ", and a GPU takes ",
         widest, " at most");
  const std::int64_t queries = out.lse.elements();
  if (queries == 0) return;
  if (fits_tiles(in)) {
    const FastForward job{attend(in, how), heads_of(out.o), for_every_column(out.lse, 1),
                          elements_of(out.greatest)};
    const bool by_warpgroups = warpgroups() && warpgroups_attend(job.attend);
    return by_warpgroups ? attend_by_warpgroups(queue(), job) : attend_fast(queue(), job);
  }
  gpu::launch(queue(), {(queries + warps - 1) / warps, 32 * warps, sizeof(Shared)},
              out.greatest ? forward_telling : forward,
              Forward{attend(in, how), heads_of(out.o), for_every_column(out.lse, 1),
                      elements_of(out.greatest), queries});
}

void CudaKernels::raise_greatest(const Tensor& greatest, const Tensor& rows) {
  if (rows.elements() == 0) return;
  gpu::launch(
      queue(), {rows.dim(1), 256, sizeof(Scratch)}, raise,
      Raise{for_every_column(greatest, 1), for_every_column(rows, 1), rows.dim(1), rows.dim(0), rows.dim(2)});
}

void CudaKernels::merge_attention(const AttentionOut& into, const AttentionOut& part) {
  const std::int64_t queries = into.lse.elements();
  if (queries == 0) return;
  gpu::launch(queue(), {(queries + warps - 1) / warps, 32 * warps}, merge,
              Merge{heads_of(into.o), heads_of(part.o), for_every_column(into.lse, 1),
                    for_every_column(part.lse, 1), queries, into.o.dim(0), into.o.dim(2), into.o.dim(3)});
}

}  // namespace weft
