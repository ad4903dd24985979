// Experts for tokens: a token a warp, few and small, so clarity goes before speed. What experts are compared
// by is kept in memory of the call, and scores are computed again where they are wanted.
#include "weft/backend/cuda/best.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/place.h"
#include "weft/backend/cuda/reduce.h"

namespace weft {
namespace {

using namespace cuda;

constexpr int warps = 8, threads = 32 * warps;
constexpr float least_sum = 1e-20F;  // below which scores are not divided by their sum

__device__ __forceinline__ std::int64_t token_of_warp() {
  return std::int64_t(blockIdx.x) * warps + threadIdx.x / 32;
}
__device__ __forceinline__ int lane_of_warp() { return int(threadIdx.x) % 32; }

template <class Job>
void a_warp_each(Queue& queue, std::int64_t count, void (*kernel)(Job), const Job& job) {
  if (count > 0) gpu::launch(queue, {(count + warps - 1) / warps, threads}, kernel, job);
}

// What is computed on the way has the type of the logits, Float.
__device__ __forceinline__ float power(float x) { return expf(x); }
__device__ __forceinline__ double power(double x) { return exp(x); }
__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ double logarithm(double x) { return log(x); }
__device__ __forceinline__ float logarithm_above_one(float x) { return log1pf(x); }
__device__ __forceinline__ double logarithm_above_one(double x) { return log1p(x); }
__device__ __forceinline__ float root(float x) { return sqrtf(x); }
__device__ __forceinline__ double root(double x) { return sqrt(x); }

template <class Float>
__device__ __forceinline__ Float sigmoid(Float x) {
  return 1 / (1 + power(-x));
}
template <class Float>
__device__ __forceinline__ Float softplus(Float x) {
  return (x > 0 ? x : 0) + logarithm_above_one(power(x > 0 ? -x : x));
}
template <class Float>
__device__ __forceinline__ Float score_of(Float x, RouterScore score) {
  return score == RouterScore::sigmoid ? sigmoid(x) : root(softplus(x));
}
template <class Float>
__device__ __forceinline__ Float slope_of(Float x, RouterScore score) {
  const Float s = sigmoid(x);
  return score == RouterScore::sigmoid ? s * (1 - s) : s / (2 * root(softplus(x)));
}

/// combine over value(0) ... value(n - 1), by a warp.
template <class Float, class Value, class Combine>
__device__ __forceinline__ Float over_row(int n, Float nothing, Combine combine, Value value) {
  Float out = nothing;
  for (int j = lane_of_warp(); j < n; j += 32) out = combine(out, value(j));
  return over_warp(out, combine);
}

/// Softmax of a row, by its maximum and its sum; every lane holds it.
template <class Float>
struct Softmax {
  Float max = 0, sum = 1;
  __device__ __forceinline__ Float operator()(Float x) const { return power(x - max) / sum; }
};
template <class Float, class Value>
__device__ __forceinline__ Softmax<Float> softmax_of(int n, Value value) {
  Softmax<Float> out;
  out.max = over_row<Float>(n, -INFINITY, Greater{}, value);
  out.sum = over_row<Float>(n, 0, Plus{}, [&](int j) { return power(value(j) - out.max); });
  return out;
}

/// All experts' scores of a token, as weights are taken from them.
template <class Float>
struct Scores {
  const Float* logits;  // of the token
  RouterScore score;
  bool normalized;
  Softmax<Float> softmax = {};

  __device__ __forceinline__ Float operator()(int j) const {
    if (score != RouterScore::softmax) return score_of(logits[j], score);
    return normalized ? softmax(logits[j]) : logits[j];
  }
};
template <class Float>
__device__ __forceinline__ Scores<Float> scores_of(const Float* logits, int e, RouterScore score,
                                                   bool normalized) {
  Scores<Float> out{logits, score, normalized};
  if (score == RouterScore::softmax && normalized)
    out.softmax = softmax_of<Float>(e, [&](int j) { return logits[j]; });
  return out;
}

template <class Float>
struct Route {
  const Float* logits;
  const float* bias;
  float* weights;
  std::int32_t* experts;
  Float *compared, *sums;  // [t, e], [t, groups]
  std::int64_t tokens;
  int e, k;
  RouteArgs how;
};

/// What is in none of the best groups becomes minus infinity.
template <class Float>
__device__ __forceinline__ void keep_groups(const Route<Float>& job, Float* compared, Float* sums) {
  const int groups = job.how.groups, each = job.e / groups, lane = lane_of_warp();
  __syncwarp();
  for (int g = lane; g < groups; g += 32) {
    Float sum = 0;
    Best<Float> last;
    for (int i = 0; i < job.k / job.how.groups_kept; ++i) {
      last = best_after(last, 0, each, 1, [&](int j) { return compared[g * each + j]; });
      sum += compared[g * each + last.at];
    }
    sums[g] = sum;
  }
  __syncwarp();
  Best<Float> last;
  for (int i = 0; i < job.how.groups_kept; ++i)
    last = next_best(last, groups, [&](int g) { return sums[g]; });
  for (int j = lane; j < job.e; j += 32)
    if (before(last, candidate(sums[j / each], j / each))) compared[j] = -INFINITY;
}

// Five blocks at once: with registers for more, some would be spilled.
template <class Float>
__global__ void __launch_bounds__(threads, sizeof(Float) == 4 ? 5 : 2) choose_experts(Route<Float> job) {
  const std::int64_t token = token_of_warp();
  if (token >= job.tokens) return;
  const int lane = lane_of_warp(), e = job.e, k = job.k;
  const RouterScore by = job.how.score;
  const Scores<Float> scores = scores_of(job.logits + token * e, e, by, job.how.softmax_first);
  Float* compared = job.compared + token * e;
  std::int32_t* experts = job.experts + token * k;
  for (int j = lane; j < e; j += 32) compared[j] = scores(j) + (job.bias ? job.bias[j] : 0);
  if (job.how.groups > 0) keep_groups(job, compared, job.sums + token * job.how.groups);
  Best<Float> last;
  for (int i = 0; i < k; ++i) {
    last = next_best(last, e, [&](int j) { return compared[j]; });
    if (lane == 0) experts[i] = last.at;
  }
  __syncwarp();
  const auto chosen = [&](int i) { return scores(experts[i]); };
  const bool softened = by == RouterScore::softmax && !job.how.softmax_first;
  const bool divided = by != RouterScore::softmax && k > 1;
  const Softmax<Float> softmax = softened ? softmax_of<Float>(k, chosen) : Softmax<Float>{};
  const Float sum = divided ? over_row<Float>(k, 0, Plus{}, chosen) + least_sum : 1;
  for (int i = lane; i < k; i += 32)
    job.weights[token * k + i] = float((softened ? softmax(chosen(i)) : chosen(i) / sum) * job.how.scaling);
}

template <class Float>
struct RouteBack {
  Float* dlogits;
  const float* dweights;
  const Float* logits;
  const std::int32_t* experts;
  std::int64_t tokens;
  int e, k;
  RouteArgs how;
  FaultWord* faults;
};

template <class Float>
__global__ void __launch_bounds__(threads) route_back(RouteBack<Float> job) {
  const std::int64_t token = token_of_warp();
  if (token >= job.tokens) return;
  const int lane = lane_of_warp(), e = job.e, k = job.k;
  const RouterScore by = job.how.score;
  const bool all = by == RouterScore::softmax && job.how.softmax_first;
  const Float* logits = job.logits + token * e;
  const Scores<Float> scores = scores_of(logits, e, by, all);
  Float* d = job.dlogits + token * e;
  const auto expert = [&](int i) {
    const std::int32_t to = job.experts[token * k + i];
    if (to >= 0 && to < e) return to;
    *job.faults = fault_of(Index::route_backward, token * k + i, to);
    return 0;
  };
  const auto chosen = [&](int i) { return scores(expert(i)); };
  const auto given = [&](int i) { return Float(job.dweights[token * k + i]) * job.how.scaling; };
  const bool softened = by == RouterScore::softmax && !all, divided = by != RouterScore::softmax && k > 1;
  const Softmax<Float> softmax = softened ? softmax_of<Float>(k, chosen) : Softmax<Float>{};
  const Float sum = divided ? over_row<Float>(k, 0, Plus{}, chosen) + least_sum : 1;
  const auto part = [&](int i) { return softened ? softmax(chosen(i)) : chosen(i) / sum; };
  const bool bound = softened || divided || all;  // whether weights depend on each other
  const Float along = bound ? over_row<Float>(k, 0, Plus{}, [&](int i) { return given(i) * part(i); }) : 0;
  if (all)
    for (int j = lane; j < e; j += 32) d[j] -= scores(j) * along;
  __syncwarp();
  for (int i = lane; i < k; i += 32) {  // no two of one expert
    const int to = expert(i);
    if (all)
      d[to] += part(i) * given(i);
    else if (softened)
      d[to] += part(i) * (given(i) - along);
    else
      d[to] += slope_of(logits[to], by) * (given(i) - along) / sum;
  }
}

template <class Float>
struct Terms {
  float* terms;
  Float* dlogits;  // or null
  const Float* logits;
  const float* factors;
  std::int64_t tokens, samples;
  int e;
  RouterScore score;
  float scale;
};

template <class Float>
__global__ void __launch_bounds__(threads) balance_tokens(Terms<Float> job) {
  const std::int64_t token = token_of_warp();
  if (token >= job.tokens) return;
  const int e = job.e;
  const float* factors = job.factors + token % job.samples * e;
  const Scores<Float> scores = scores_of(job.logits + token * e, e, job.score, true);
  const bool softmax = job.score == RouterScore::softmax;
  const Float sum = softmax ? 1 : over_row<Float>(e, 0, Plus{}, scores) + least_sum;
  const Float along = over_row<Float>(e, 0, Plus{}, [&](int j) { return scores(j) / sum * factors[j]; });
  if (lane_of_warp() == 0) job.terms[token] = float(along);
  if (!job.dlogits) return;
  for (int j = lane_of_warp(); j < e; j += 32) {
    const Float slope = softmax ? scores(j) : slope_of(scores.logits[j], job.score) / sum;
    job.dlogits[token * e + j] += job.scale * slope * (factors[j] - along);
  }
}

template <class Float>
__global__ void __launch_bounds__(threads, sizeof(Float) == 4 ? 1 : 2) square_tokens(Terms<Float> job) {
  const std::int64_t token = token_of_warp();
  if (token >= job.tokens) return;
  const Float* logits = job.logits + token * job.e;
  const Softmax<Float> softmax = softmax_of<Float>(job.e, [&](int j) { return logits[j]; });
  const Float of_sum = softmax.max + logarithm(softmax.sum);
  if (lane_of_warp() == 0) job.terms[token] = float(of_sum * of_sum);
  if (!job.dlogits) return;
  for (int j = lane_of_warp(); j < job.e; j += 32)
    job.dlogits[token * job.e + j] += 2 * job.scale * of_sum * softmax(logits[j]);
}

/// act for the type that logits have.
template <class Act>
void as_logits(const Tensor& logits, const Act& act) {
  logits.dtype() == Dtype::f64 ? act.template operator()<double>() : act.template operator()<float>();
}

}  // namespace

void CudaKernels::route(const Routed& out, const Tensor& logits, const Tensor& bias, const RouteArgs& how) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1);
  if (t == 0) return;
  const Tensor compared = workspace({t, e}, logits.dtype());
  const Tensor sums = how.groups > 0 ? workspace({t, how.groups}, logits.dtype()) : Tensor();
  as_logits(logits, [&]<class Float>() {
    const Route<Float> job{elements<Float>(logits),
                           elements<float>(bias),
                           elements<float>(out.weights),
                           elements<std::int32_t>(out.experts),
                           elements<Float>(compared),
                           elements<Float>(sums),
                           t,
                           int(e),
                           int(out.experts.dim(1)),
                           how};
    a_warp_each(queue(), t, choose_experts<Float>, job);
  });
}

void CudaKernels::route_backward(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                                 const Routed& routed, const RouteArgs& how) {
  as_logits(logits, [&]<class Float>() {
    const RouteBack<Float> job{elements<Float>(dlogits),
                               elements<float>(dweights),
                               elements<Float>(logits),
                               elements<std::int32_t>(routed.experts),
                               logits.dim(0),
                               int(logits.dim(1)),
                               int(routed.experts.dim(1)),
                               how,
                               faults()};
    a_warp_each(queue(), job.tokens, route_back<Float>, job);
  });
}

void CudaKernels::balance(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                          const Tensor& factors, RouterScore score, float scale) {
  as_logits(logits, [&]<class Float>() {
    const Terms<Float> job{elements<float>(terms),
                           elements<Float>(dlogits),
                           elements<Float>(logits),
                           elements<float>(factors),
                           logits.dim(0),
                           factors.dim(0),
                           int(logits.dim(1)),
                           score,
                           scale};
    a_warp_each(queue(), job.tokens, balance_tokens<Float>, job);
  });
}

void CudaKernels::square_log_sum(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                                 float scale) {
  as_logits(logits, [&]<class Float>() {
    const Terms<Float> job{elements<float>(terms),
                           elements<Float>(dlogits),
                           elements<Float>(logits),
                           nullptr,
                           logits.dim(0),
                           1,
                           int(logits.dim(1)),
                           RouterScore::softmax,
                           scale};
    a_warp_each(queue(), job.tokens, square_tokens<Float>, job);
  });
}

}  // namespace weft
