// Turns a call for attention into a job for the loops: addresses and steps, how far it is cut, who keeps what
// where.
#pragma once

#include <cstdint>

#include "weft/backend/cpu/fast/attention_job.h"
#include "weft/tensor/args.h"

namespace weft::fast {

/// Sizes, masks and what forward and backward both read; no workspace yet.
AttentionJob attention_job(const Attended& in, const AttentionArgs& how);
AttentionRows attention_rows(const Tensor& t);
AttentionSums attention_sums(const Tensor& lse);

/// Tasks of one kind, and what one thread of them needs.
struct ForwardPlan {
  std::int64_t stripe = 0, stripes = 0, tasks = 0;
  ForwardPlaces places;
};
ForwardPlan plan_forward(const AttentionJob& job, int threads);

/// Either `all` tasks, or `keys` and then `queries` tasks.
struct BackwardPlan {
  std::int64_t all = 0, keys = 0, queries = 0;
  std::int64_t rows = 1;                            // of the batch, that one task walks over
  std::int64_t chunk = 0, chunks = 0, stripes = 0;  // keys at once, and how many such
  BackwardPlaces places;
};
BackwardPlan plan_backward(const AttentionJob& job, int threads);
/// Of the job's heads; no memory yet.
AttentionBiasSums plan_bias_sums(const AttentionJob& job);

}  // namespace weft::fast
