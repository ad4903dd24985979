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

__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ __forceinline__ float softplus(float x) { return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x))); }
__device__ __forceinline__ float score_of(float x, RouterScore score) {
  return score == RouterScore::sigmoid ? sigmoid(x) : sqrtf(softplus(x));
}
__device__ __forceinline__ float slope_of(float x, RouterScore score) {
  const float s = sigmoid(x);
  return score == RouterScore::sigmoid ? s * (1 - s) : s / (2 * sqrtf(softplus(x)));
}

__device__ __forceinline__ std::int64_t token_of_warp() {
  return std::int64_t(blockIdx.x) * warps + threadIdx.x / 32;
}
__device__ __forceinline__ int lane_of_warp() { return int(threadIdx.x) % 32; }

/// combine over value(0) ... value(n - 1), by a warp.
template <class Value, class Combine>
__device__ __forceinline__ float over_row(int n, float nothing, Combine combine, Value value) {
  float out = nothing;
  for (int j = lane_of_warp(); j < n; j += 32) out = combine(out, value(j));
  return over_warp(out, combine);
}

/// Softmax of a row, by its maximum and its sum; every lane holds it.
struct Softmax {
  float max, sum;
  __device__ __forceinline__ float operator()(float x) const { return expf(x - max) / sum; }
};
template <class Value>
__device__ __forceinline__ Softmax softmax_of(int n, Value value) {
  Softmax out{over_row(n, -INFINITY, Greater{}, value), 0};
  out.sum = over_row(n, 0, Plus{}, [&](int j) { return expf(value(j) - out.max); });
  return out;
}

/// All experts' scores of a token, as weights are taken from them.
struct Scores {
  const float* logits;  // of the token
  RouterScore score;
  bool normalized;
  Softmax softmax;

  __device__ __forceinline__ float operator()(int j) const {
    if (score != RouterScore::softmax) return score_of(logits[j], score);
    return normalized ? softmax(logits[j]) : logits[j];
  }
};
__device__ __forceinline__ Scores scores_of(const float* logits, int e, RouterScore score, bool normalized) {
  Scores out{logits, score, normalized, {0, 1}};
  if (score == RouterScore::softmax && normalized)
    out.softmax = softmax_of(e, [&](int j) { return logits[j]; });
  return out;
}

struct Route {
  const float *logits, *bias;
  float* weights;
  std::int32_t* experts;
  float *compared, *sums;  // [t, e], [t, groups]
  std::int64_t tokens;
  int e, k;
  RouteArgs how;
};

/// What is in none of the best groups becomes minus infinity.
__device__ __forceinline__ void keep_groups(const Route& job, float* compared, float* sums) {
  const int groups = job.how.groups, each = job.e / groups, lane = lane_of_warp();
  __syncwarp();
  for (int g = lane; g < groups; g += 32) {
    float sum = 0;
    Best last{0, -1};
    for (int i = 0; i < job.k / job.how.groups_kept; ++i) {
      last = best_after(last, 0, each, 1, [&](int j) { return compared[g * each + j]; });
      sum += compared[g * each + last.at];
    }
    sums[g] = sum;
  }
  __syncwarp();
  Best last{0, -1};
  for (int i = 0; i < job.how.groups_kept; ++i)
    last = next_best(last, groups, [&](int g) { return sums[g]; });
  for (int j = lane; j < job.e; j += 32)
    if (before(last, candidate(sums[j / each], j / each))) compared[j] = -INFINITY;
}

// Five blocks at once: with registers for more, some would be spilled.
__global__ void __launch_bounds__(threads, 5) choose_experts(Route job) {
  const std::int64_t token = token_of_warp();
  if (token >= job.tokens) return;
  const int lane = lane_of_warp(), e = job.e, k = job.k;
  const RouterScore by = job.how.score;
  const Scores scores = scores_of(job.logits + token * e, e, by, job.how.softmax_first);
  float *compared = job.compared + token * e, *weights = job.weights + token * k;
  for (int j = lane; j < e; j += 32) compared[j] = scores(j) + (job.bias ? job.bias[j] : 0);
  if (job.how.groups > 0) keep_groups(job, compared, job.sums + token * job.how.groups);
  Best last{0, -1};
  for (int i = 0; i < k; ++i) {
    last = next_best(last, e, [&](int j) { return compared[j]; });
    if (lane != 0) continue;
    job.experts[token * k + i] = last.at;
    weights[i] = scores(last.at);
  }
  __syncwarp();
  const auto chosen = [&](int i) { return weights[i]; };
  const bool softened = by == RouterScore::softmax && !job.how.softmax_first;
  const bool divided = by != RouterScore::softmax && k > 1;
  const Softmax softmax = softened ? softmax_of(k, chosen) : Softmax{0, 1};
  const float sum = divided ? over_row(k, 0, Plus{}, chosen) + least_sum : 1;
  for (int i = lane; i < k; i += 32)
    weights[i] = (softened ? softmax(weights[i]) : weights[i] / sum) * job.how.scaling;
}

struct RouteBack {
  float* dlogits;
  const float *dweights, *logits;
  const std::int32_t* experts;
  std::int64_t tokens;
  int e, k;
  RouteArgs how;
  FaultWord* faults;
};

__global__ void __launch_bounds__(threads) route_back(RouteBack job) {
  const std::int64_t token = token_of_warp();
  if (token >= job.tokens) return;
  const int lane = lane_of_warp(), e = job.e, k = job.k;
  const RouterScore by = job.how.score;
  const bool all = by == RouterScore::softmax && job.how.softmax_first;
  const float* logits = job.logits + token * e;
  const Scores scores = scores_of(logits, e, by, all);
  float* d = job.dlogits + token * e;
  const auto expert = [&](int i) {
    const std::int32_t to = job.experts[token * k + i];
    if (to >= 0 && to < e) return to;
    *job.faults = fault_of(Index::route_backward, token * k + i, to);
    return 0;
  };
  const auto chosen = [&](int i) { return scores(expert(i)); };
  const auto given = [&](int i) { return job.dweights[token * k + i] * job.how.scaling; };
  const bool softened = by == RouterScore::softmax && !all, divided = by != RouterScore::softmax && k > 1;
  const Softmax softmax = softened ? softmax_of(k, chosen) : Softmax{0, 1};
  const float sum = divided ? over_row(k, 0, Plus{}, chosen) + least_sum : 1;
  const auto part = [&](int i) { return softened ? softmax(chosen(i)) : chosen(i) / sum; };
  const bool bound = softened || divided || all;  // whether weights depend on each other
  const float along = bound ? over_row(k, 0, Plus{}, [&](int i) { return given(i) * part(i); }) : 0;
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

struct Terms {
  float *terms, *dlogits;  // or null
  const float *logits, *factors;
  std::int64_t tokens, samples;
  int e;
  RouterScore score;
  float scale;
};

__global__ void __launch_bounds__(threads) balance_tokens(Terms job) {
  const std::int64_t token = token_of_warp();
  if (token >= job.tokens) return;
  const int e = job.e;
  const float* factors = job.factors + token % job.samples * e;
  const Scores scores = scores_of(job.logits + token * e, e, job.score, true);
  const bool softmax = job.score == RouterScore::softmax;
  const float sum = softmax ? 1 : over_row(e, 0, Plus{}, scores) + least_sum;
  const float along = over_row(e, 0, Plus{}, [&](int j) { return scores(j) / sum * factors[j]; });
  if (lane_of_warp() == 0) job.terms[token] = along;
  if (!job.dlogits) return;
  for (int j = lane_of_warp(); j < e; j += 32) {
    const float slope = softmax ? scores(j) : slope_of(scores.logits[j], job.score) / sum;
    job.dlogits[token * e + j] += job.scale * slope * (factors[j] - along);
  }
}

__global__ void __launch_bounds__(threads) square_tokens(Terms job) {
  const std::int64_t token = token_of_warp();
  if (token >= job.tokens) return;
  const float* logits = job.logits + token * job.e;
  const Softmax softmax = softmax_of(job.e, [&](int j) { return logits[j]; });
  const float logarithm = softmax.max + logf(softmax.sum);
  if (lane_of_warp() == 0) job.terms[token] = logarithm * logarithm;
  if (!job.dlogits) return;
  for (int j = lane_of_warp(); j < job.e; j += 32)
    job.dlogits[token * job.e + j] += 2 * job.scale * logarithm * softmax(logits[j]);
}

struct Count {
  float* counts;  // [samples, e]
  const std::int32_t* experts;
  std::int64_t tokens, samples, e, k;
  FaultWord* faults;
};

// An expert of a sample a warp.
__global__ void __launch_bounds__(threads) count_chosen(Count job) {
  const std::int64_t place = token_of_warp(), sample = place / job.e, mine = place % job.e;
  if (sample >= job.samples) return;
  const auto of_sample = int(job.tokens / job.samples), chosen = int(job.k);
  int count = 0;
  for (int token = lane_of_warp(); token < of_sample; token += 32) {
    const std::int64_t first = (token * job.samples + sample) * chosen;
    for (int choice = 0; choice < chosen; ++choice) {
      const std::int64_t at = first + choice;
      const std::int32_t expert = job.experts[at];
      if (mine == 0 && expert >= job.e) *job.faults = fault_of(Index::count_experts, at, expert);
      count += expert == mine;
    }
  }
  const float all = over_warp(float(count), Plus{});
  if (lane_of_warp() == 0) job.counts[place] = all;
}

struct Limit {
  std::int32_t* kept;
  const std::int32_t* experts;
  const float* weights;
  std::int64_t n, most;
  bool by_weight;
};

// A choice a thread, which looks for those of its expert that come before it: all against all.
__global__ void __launch_bounds__(threads) limit_chosen(Limit job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (i >= job.n) return;
  const std::int32_t mine = job.experts[i];
  const Best me = candidate(job.by_weight ? job.weights[i] : 0, int(i));
  std::int64_t earlier = 0;
  const std::int64_t end = job.by_weight ? job.n : i;
  for (std::int64_t j = 0; j < end && earlier < job.most; ++j)
    if (job.experts[j] == mine) earlier += before(candidate(job.by_weight ? job.weights[j] : 0, int(j)), me);
  job.kept[i] = mine >= 0 && earlier >= job.most ? -1 : mine;
}

struct Follow {
  float* bias;
  const float* counts;
  std::int64_t e;
  float rate;
};

__global__ void __launch_bounds__(threads) follow(Follow job) {
  const std::int64_t j = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (j >= job.e) return;
  double sum = 0;
  for (std::int64_t i = 0; i < job.e; ++i) sum += double(job.counts[i]);
  const double mean = sum / double(job.e), mine = double(job.counts[j]);
  if (mine != mean) job.bias[j] += mine < mean ? job.rate : -job.rate;
}

template <class Job>
void a_warp_each(Queue& queue, std::int64_t count, void (*kernel)(Job), const Job& job) {
  if (count > 0) gpu::launch(queue, {(count + warps - 1) / warps, threads}, kernel, job);
}

}  // namespace

void CudaKernels::route(const Routed& out, const Tensor& logits, const Tensor& bias, const RouteArgs& how) {
  if (logits.dtype() == Dtype::f64)
    return Kernels::route(out, logits, bias, how);  // which says that it is not here
  const std::int64_t t = logits.dim(0), e = logits.dim(1);
  if (t == 0) return;
  const Tensor compared = workspace({t, e});
  const Tensor sums = how.groups > 0 ? workspace({t, how.groups}) : Tensor();
  const Route job{elements<float>(logits),
                  elements<float>(bias),
                  elements<float>(out.weights),
                  elements<std::int32_t>(out.experts),
                  elements<float>(compared),
                  elements<float>(sums),
                  t,
                  int(e),
                  int(out.experts.dim(1)),
                  how};
  a_warp_each(queue(), t, choose_experts, job);
}

void CudaKernels::route_backward(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                                 const Routed& routed, const RouteArgs& how) {
  const RouteBack job{elements<float>(dlogits),
                      elements<float>(dweights),
                      elements<float>(logits),
                      elements<std::int32_t>(routed.experts),
                      logits.dim(0),
                      int(logits.dim(1)),
                      int(routed.experts.dim(1)),
                      how,
                      faults()};
  a_warp_each(queue(), job.tokens, route_back, job);
}

void CudaKernels::balance(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                          const Tensor& factors, RouterScore score, float scale) {
  const Terms job{elements<float>(terms),
                  elements<float>(dlogits),
                  elements<float>(logits),
                  elements<float>(factors),
                  logits.dim(0),
                  factors.dim(0),
                  int(logits.dim(1)),
                  score,
                  scale};
  a_warp_each(queue(), job.tokens, balance_tokens, job);
}

void CudaKernels::square_log_sum(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                                 float scale) {
  const Terms job{elements<float>(terms),
                  elements<float>(dlogits),
                  elements<float>(logits),
                  nullptr,
                  logits.dim(0),
                  1,
                  int(logits.dim(1)),
                  RouterScore::softmax,
                  scale};
  a_warp_each(queue(), job.tokens, square_tokens, job);
}

void CudaKernels::count_experts(const Tensor& counts, const Tensor& experts) {
  const Count job{elements<float>(counts),
                  elements<std::int32_t>(experts),
                  experts.dim(0),
                  counts.dim(0),
                  counts.dim(1),
                  experts.dim(1),
                  faults()};
  a_warp_each(queue(), counts.elements(), count_chosen, job);
}

void CudaKernels::limit_experts(const Tensor& kept, const Routed& routed, std::int64_t most,
                                DropPolicy policy) {
  const Limit job{elements<std::int32_t>(kept),
                  elements<std::int32_t>(routed.experts),
                  elements<float>(routed.weights),
                  kept.elements(),
                  most,
                  policy == DropPolicy::probs};
  if (job.n > 0) gpu::launch(queue(), {(job.n + threads - 1) / threads, threads}, limit_chosen, job);
}

void CudaKernels::follow_counts(const Tensor& bias, const Tensor& counts, float rate) {
  const Follow job{elements<float>(bias), elements<float>(counts), bias.elements(), rate};
  if (job.e > 0) gpu::launch(queue(), {(job.e + threads - 1) / threads, threads}, follow, job);
}

}  // namespace weft
