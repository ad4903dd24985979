// How often experts were chosen, who of them has too many tokens, and biases that follow.
#include "weft/backend/cuda/best.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/place.h"
#include "weft/backend/cuda/reduce.h"
#include "weft/backend/cuda/warp_each.h"

namespace weft {
namespace {

using namespace cuda;

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
  const Best<float> me = candidate(job.by_weight ? job.weights[i] : 0, int(i));
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

}  // namespace

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
