// Attention of any type, mask and width, backward: gradients of queries a query a warp, of keys and values a
// key a warp, of the bias a distance a warp. Each is a sum in one warp, so no order but its own shows.
//
// p = exp(score - lse), k(ept) its dropout factor, delta = <dout, o>:
//   dv_j += p k dout,  ds = p (k <dout, v_j> - delta),  dq += scale ds k_j,  dk_j += scale ds q,  dbias += ds
#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_lines.h"
#include "weft/backend/cuda/attention_tiles.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/reduce.h"

namespace weft {
namespace {

using namespace cuda;

// So many blocks at once: nvcc is told, or it spills registers to have more.
constexpr int widest = 256, warps = 4, blocks = 3;

struct OfWarp {
  float left[widest], right[widest], p[32], ds[32];
};
struct Shared {
  OfWarp of[warps];
};

/// This warp's task, -1 where there is none left.
__device__ __forceinline__ std::int64_t task_of(const AttentionBackward& job) {
  const std::int64_t task = std::int64_t(blockIdx.x) * warps + threadIdx.x / 32;
  return task < job.tasks ? task : -1;
}

/// A row into shared memory, zeros behind its end.
__device__ __forceinline__ void hold(float (&to)[widest], const Heads& from, std::int64_t at) {
  for (int c = int(threadIdx.x) % 32; c < widest; c += 32)
    to[c] = c < from.one.width ? get(from.one, at + c) : 0.0F;
}

/// Queries that a warp takes at once: four, a lane eight channels of one after the other.
constexpr int queries_at_once = 4, lanes = 32 / queries_at_once;

__global__ void __launch_bounds__(32 * warps) corrections(AttentionBackward job) {
  const std::int64_t task = (std::int64_t(blockIdx.x) * warps * 32 + threadIdx.x) / lanes;
  const bool inside = task < job.tasks;
  const Attend& a = job.attend;
  const Pair at = query_place(a, inside ? task : 0);
  const std::int64_t x = job.dout.at(at.i, at.b, at.g, at.r), y = job.o.at(at.i, at.b, at.g, at.r);
  float sum = 0;
  for (std::int64_t c = threadIdx.x % lanes * 8; c < a.v.one.width; c += lanes * 8) {
    const Packed ours = ask(job.dout.one, x, c), theirs = ask(job.o.one, y, c);
    const Eight dout = unpack(job.dout.one, c, ours), o = unpack(job.o.one, c, theirs);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += dout.x[i] * o.x[i];
  }
#pragma unroll
  for (int by = lanes / 2; by > 0; by /= 2) sum += __shfl_xor_sync(~0U, sum, by);
  if (!inside || threadIdx.x % lanes != 0) return;
  job.delta[task] = sum;
  const float lse = get(job.lse, start_of(job.lse, task));
  job.power[task] = lse == -INFINITY ? INFINITY : lse * log2_e;
}

/// A probability and its slope.
struct Slope {
  float p, ds;
};
__device__ __forceinline__ Slope slope_of(const AttentionBackward& job, const Pair& at, float score,
                                          float along) {
  const std::int64_t query = job.attend.query_of(at);
  const float lse = get(job.lse, start_of(job.lse, query));
  if (lse == -INFINITY) return {0, 0};
  const float finished = job.attend.finished(at, score), p = expf(finished - lse);
  const float kept = p == 0 ? 0 : job.attend.kept(at), ds = p * (kept * along - job.delta[query]);
  return {p * kept, job.attend.cap > 0 ? ds * job.attend.slope_under_cap(finished * log2_e) : ds};
}

__global__ void __launch_bounds__(32 * warps, blocks) of_queries(AttentionBackward job) {
  const std::int64_t task = task_of(job);
  if (task < 0) return;
  const Attend& a = job.attend;
  auto& mine = gpu::shared<Shared>().of[threadIdx.x / 32];
  const int lane = int(threadIdx.x) % 32;
  Pair at = query_place(a, task);
  hold(mine.left, a.q, a.q.at(at.i, at.b, at.g, at.r));
  hold(mine.right, job.dout, job.dout.at(at.i, at.b, at.g, at.r));
  __syncwarp();
  float dq[widest / 32] = {};
  const int last = a.last_key(at.i);
  for (int first = a.first_key(at.i); first < last; first += 32) {
    at.j = first + lane;
    mine.ds[lane] = 0;
    if (a.sees(at)) {
      const float score = a.scale * dot(a.k.one, a.k.at(at.j, at.b, at.g, 0), mine.left);
      mine.ds[lane] = slope_of(job, at, score, dot(a.v.one, a.v.at(at.j, at.b, at.g, 0), mine.right)).ds;
    }
    __syncwarp();
    const int keys = last - first < 32 ? last - first : 32;
    for (int key = 0; key < keys; ++key) {
      const std::int64_t k = a.k.at(first + key, at.b, at.g, 0);
#pragma unroll
      for (int c = 0; c < widest / 32; ++c)
        if (c * 32 + lane < a.k.one.width) dq[c] += mine.ds[key] * get(a.k.one, k + c * 32 + lane);
    }
    __syncwarp();
  }
  const std::int64_t to = job.dq.at(at.i, at.b, at.g, at.r);
#pragma unroll
  for (int c = 0; c < widest / 32; ++c)
    if (c * 32 + lane < a.q.one.width) put_sum(job.dq, to + c * 32 + lane, a.scale * dq[c], job.accumulate);
}

/// Queries that may see a key lie in [first, last).
struct Range {
  int first, last;
};
__device__ __forceinline__ Range queries_of(const Attend& a, int j) {
  Range out{a.causal ? j - a.diagonal : 0, a.window > 0 ? j - a.diagonal + a.window : a.sq};
  if (out.first < 0) out.first = 0;
  if (out.last > a.sq) out.last = a.sq;
  return out;
}

struct KeySums {
  float dk[widest / 32], dv[widest / 32];
};
/// What the queries of one head, the next 32 of them, give to a key.
__device__ __forceinline__ void add_queries(const AttentionBackward& job, Pair at, Range range,
                                            KeySums& sums) {
  const Attend& a = job.attend;
  auto& mine = gpu::shared<Shared>().of[threadIdx.x / 32];
  const int lane = int(threadIdx.x) % 32;
  at.i = range.first + lane;
  mine.p[lane] = mine.ds[lane] = 0;
  if (at.i < range.last && a.sees(at)) {
    const float score = a.scale * dot(a.q.one, a.q.at(at.i, at.b, at.g, at.r), mine.left);
    const float along = dot(job.dout.one, job.dout.at(at.i, at.b, at.g, at.r), mine.right);
    const Slope slope = slope_of(job, at, score, along);
    mine.p[lane] = slope.p;
    mine.ds[lane] = slope.ds;
  }
  __syncwarp();
  const int queries = range.last - range.first < 32 ? range.last - range.first : 32;
  for (int i = 0; i < queries; ++i) {
    const std::int64_t q = a.q.at(range.first + i, at.b, at.g, at.r);
    const std::int64_t dout = job.dout.at(range.first + i, at.b, at.g, at.r);
#pragma unroll
    for (int c = 0; c < widest / 32; ++c) {
      const int column = c * 32 + lane;
      if (column < a.q.one.width) sums.dk[c] += mine.ds[i] * get(a.q.one, q + column);
      if (column < a.v.one.width) sums.dv[c] += mine.p[i] * get(job.dout.one, dout + column);
    }
  }
  __syncwarp();
}

__global__ void __launch_bounds__(32 * warps, blocks) of_keys(AttentionBackward job) {
  const std::int64_t task = task_of(job);
  if (task < 0) return;
  const Attend& a = job.attend;
  auto& mine = gpu::shared<Shared>().of[threadIdx.x / 32];
  const int lane = int(threadIdx.x) % 32;
  Pair at = head_place(a, int(task / a.sk) * a.heads);
  at.j = int(task % a.sk);
  hold(mine.left, a.k, a.k.at(at.j, at.b, at.g, 0));
  hold(mine.right, a.v, a.v.at(at.j, at.b, at.g, 0));
  __syncwarp();
  KeySums sums{};
  const Range all = queries_of(a, at.j);
  for (at.r = 0; at.r < a.heads; ++at.r)
    for (int first = all.first; first < all.last; first += 32) add_queries(job, at, {first, all.last}, sums);
  const std::int64_t dk = job.dk.at(at.j, at.b, at.g, 0), dv = job.dv.at(at.j, at.b, at.g, 0);
#pragma unroll
  for (int c = 0; c < widest / 32; ++c) {
    const int column = c * 32 + lane;
    if (column < a.k.one.width) put_sum(job.dk, dk + column, a.scale * sums.dk[c], job.accumulate);
    if (column < a.v.one.width) put_sum(job.dv, dv + column, sums.dv[c], job.accumulate);
  }
}

/// The product of two rows in memory.
__device__ __forceinline__ float dot_of(const Rows& x, std::int64_t x_at, const Rows& y, std::int64_t y_at) {
  float sum = 0;
  for (std::int64_t c = 0; c < x.width; c += 8) {
    const Eight a = read(x, x_at, c), b = read(y, y_at, c);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += a.x[i] * b.x[i];
  }
  return sum;
}

__global__ void __launch_bounds__(32 * warps, blocks) of_bias(AttentionBackward job) {
  const std::int64_t task = task_of(job);
  if (task < 0) return;
  const Attend& a = job.attend;
  const int head = int(task / a.distances), back = int(task % a.distances - a.bias0);  // i - j
  Pair at{0, head / a.heads, head % a.heads, 0, 0};
  float sum = 0;
  for (at.b = 0; at.b < a.batch; ++at.b)
    for (at.i = int(threadIdx.x) % 32; at.i < a.sq; at.i += 32) {
      at.j = at.i - back;
      if (at.j < 0 || !a.sees(at)) continue;
      const std::int64_t q = a.q.at(at.i, at.b, at.g, at.r), dout = job.dout.at(at.i, at.b, at.g, at.r);
      const float score = a.scale * dot_of(a.q.one, q, a.k.one, a.k.at(at.j, at.b, at.g, 0));
      sum += slope_of(job, at, score, dot_of(job.dout.one, dout, a.v.one, a.v.at(at.j, at.b, at.g, 0))).ds;
    }
  sum = over_warp(sum, Plus{});
  if (threadIdx.x % 32 == 0) job.dbias[task] += sum;
}

void run(Queue& queue, AttentionBackward job, std::int64_t tasks, void (*kernel)(AttentionBackward)) {
  job.tasks = tasks;
  if (tasks > 0) gpu::launch(queue, {(tasks + warps - 1) / warps, 32 * warps, sizeof(Shared)}, kernel, job);
}

}  // namespace

void CudaKernels::attention_backward(const AttentionGrads& grads, const Tensor& dout, const AttentionOut& out,
                                     const Attended& in, const AttentionArgs& how) {
  if (in.q.dim(-1) > widest || in.v.dim(-1) > widest)
    fail(Kind::device, "attention_backward: heads of ", std::max(in.q.dim(-1), in.v.dim(-1)),
         ", and a GPU takes ", widest, " at most");
  const std::int64_t queries = out.lse.elements();
  const Tensor numbers = workspace({2, queries});
  const Attend a = attend(in, how);
  const bool by_tiles = fits_tiles(in, dout);
  const Tensor lines = by_tiles && grads.dbias ? workspace(lines_of_distances(in)) : Tensor();
  AttentionBackward job{.attend = a,
                        .dout = heads_of(dout),
                        .o = heads_of(out.o),
                        .dq = heads_of(grads.dq),
                        .dk = heads_of(grads.dk),
                        .dv = heads_of(grads.dv),
                        .lse = for_every_column(out.lse, 1),
                        .delta = elements<float>(numbers),
                        .power = elements<float>(numbers) + queries,
                        .dbias = elements<float>(grads.dbias),
                        .lines = elements<float>(lines),
                        .accumulate = grads.accumulate,
                        .tasks = 0};
  job.tasks = queries;
  const std::int64_t at_once = warps * queries_at_once;
  if (queries > 0) gpu::launch(queue(), {(queries + at_once - 1) / at_once, 32 * warps}, corrections, job);
  if (by_tiles && !job.dbias && warpgroups() && warpgroups_attend_backward(a))
    return attend_backward_by_warpgroups(queue(), job);
  if (by_tiles) return attend_backward_fast(queue(), job);
  run(queue(), job, queries, of_queries);
  run(queue(), job, a.batch * a.groups * a.sk, of_keys);
  if (job.dbias) run(queue(), job, a.groups * a.heads * a.distances, of_bias);
}

}  // namespace weft
