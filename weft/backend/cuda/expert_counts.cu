// How often experts were chosen, who of them has too many tokens, and biases that follow.
#include <algorithm>
#include <bit>

#include "weft/backend/cuda/best.h"
#include "weft/backend/cuda/in_order.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/place.h"
#include "weft/backend/cuda/reduce.h"

namespace weft {
namespace {

using namespace cuda;

constexpr int threads = 256;

struct Count {
  float* counts;  // [samples, e]
  const std::int32_t* experts;
  std::int64_t tokens, samples, e, k;
  FaultWord* faults;
};

// An expert of a sample a block.
__global__ void __launch_bounds__(threads) count_chosen(Count job) {
  const std::int64_t sample = blockIdx.x / job.e, mine = blockIdx.x % job.e;
  const auto of_sample = int(job.tokens / job.samples), chosen = int(job.k);
  int count = 0;
  for (int token = int(threadIdx.x); token < of_sample; token += threads) {
    const std::int64_t first = (token * job.samples + sample) * chosen;
    for (int choice = 0; choice < chosen; ++choice) {
      const std::int64_t at = first + choice;
      const std::int32_t expert = job.experts[at];
      if (mine == 0 && expert >= job.e) *job.faults = fault_of(Index::count_experts, at, expert);
      count += expert == mine;
    }
  }
  auto& room = gpu::shared<ScratchOf<int>>();
  const int all = over_block(count, room, 0, Plus{});
  if (threadIdx.x == 0) job.counts[blockIdx.x] = float(all);
}

constexpr std::int64_t few_choices = 2048;

struct Limit {
  std::int32_t* kept;
  const std::int32_t* experts;
  const float* weights;
  std::int64_t n;
  int most;
  bool by_weight;
};
constexpr int limiting_blocks = 256;  // nobody says how many experts there are, and there may be more
template <int many>
struct Limiting {
  ScratchOf<int> counts;
  Votes<many / 32> votes;
};

/// A number that is greater where a weight is, of all but NaN, which is as great as can be, so that it is
/// seen; the same of all where their places alone decide.
__device__ __forceinline__ std::uint32_t worth_of(const Limit& job, std::int64_t i) {
  if (!job.by_weight) return 0;
  const float weight = candidate(job.weights[i], 0).value;
  const std::uint32_t bits = weight == 0 ? 0 : std::bit_cast<std::uint32_t>(weight);
  return bits >> 31 != 0 ? ~bits : bits | 1U << 31;
}

/// How many of an expert's choices are worth more than that.
template <int many>
__device__ __forceinline__ int count_above(const Limit& job, std::int32_t expert, std::int64_t worth,
                                           Limiting<many>& room) {
  int count = 0;
  for (std::int64_t i = threadIdx.x; i < job.n; i += many)
    count += job.experts[i] == expert && worth_of(job, i) > worth;
  return over_block(count, room.counts, 0, Plus{});
}

/// The greatest worth of which, and of more, there are at least as many as are kept; 0 where all are. Found
/// bit by bit.
template <int many>
__device__ __forceinline__ std::uint32_t least_kept(const Limit& job, std::int32_t expert,
                                                    Limiting<many>& room) {
  std::uint32_t least = 0;
  if (!job.by_weight || count_above(job, expert, -1, room) <= job.most) return least;
  for (std::uint32_t bit = 1U << 31; bit != 0; bit >>= 1)
    if (count_above(job, expert, std::int64_t(least | bit) - 1, room) >= job.most) least |= bit;
  return least;
}

/// Of those that are worth just as much as the least, the first are kept.
template <int many>
__device__ __forceinline__ void keep_most(const Limit& job, std::int32_t expert, Limiting<many>& room) {
  const std::uint32_t least = least_kept(job, expert, room);
  int left = job.most - count_above(job, expert, least, room);
  for (std::int64_t from = 0; from < job.n; from += many) {
    const std::int64_t i = from + threadIdx.x;
    const bool mine = i < job.n && job.experts[i] == expert;
    const std::uint32_t worth = mine ? worth_of(job, i) : 0;
    const Ranks ranks = rank(mine && worth == least, room.votes);
    if (mine) job.kept[i] = worth > least || (worth == least && ranks.before < left) ? expert : -1;
    left -= ranks.all;
  }
}

// An expert a block after the other; what was dropped before stays so.
template <int many>
__global__ void __launch_bounds__(many) limit_chosen(Limit job) {
  auto& room = gpu::shared<Limiting<many>>();
  int last = -1;
  for (std::int64_t i = threadIdx.x; i < job.n; i += many) {
    last = Greater{}(last, job.experts[i]);
    if (blockIdx.x == 0 && job.experts[i] < 0) job.kept[i] = job.experts[i];
  }
  last = over_block(last, room.counts, -1, Greater{});
  for (int expert = int(blockIdx.x); expert <= last; expert += int(gridDim.x)) keep_most(job, expert, room);
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
  if (const std::int64_t blocks = counts.elements(); blocks > 0)
    gpu::launch(queue(), {blocks, threads, sizeof(ScratchOf<int>)}, count_chosen, job);
}

void CudaKernels::limit_experts(const Tensor& kept, const Routed& routed, std::int64_t most,
                                DropPolicy policy) {
  const std::int64_t n = kept.elements();
  const Limit job{elements<std::int32_t>(kept),    elements<std::int32_t>(routed.experts),
                  elements<float>(routed.weights), n,
                  int(std::min(most, n)),          policy == DropPolicy::probs};
  if (n > few_choices)
    gpu::launch(queue(), {limiting_blocks, 1024, sizeof(Limiting<1024>)}, limit_chosen<1024>, job);
  else if (n > 0)
    gpu::launch(queue(), {limiting_blocks, 256, sizeof(Limiting<256>)}, limit_chosen<256>, job);
}

void CudaKernels::follow_counts(const Tensor& bias, const Tensor& counts, float rate) {
  const Follow job{elements<float>(bias), elements<float>(counts), bias.elements(), rate};
  if (job.e > 0) gpu::launch(queue(), {(job.e + threads - 1) / threads, threads}, follow, job);
}

}  // namespace weft
