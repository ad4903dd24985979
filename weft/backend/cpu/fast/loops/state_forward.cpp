// A state space forward: chunk after chunk, of each all heads of the task, which share q and k.
//
//   o_i = gamma_i S0^T q_i + sum over j <= i of p_ij v_j,   p_ij = fade_ij (q_i k_j) t_j, and the skip on top
//   S = gamma_last S0 + sum over i of rest_i t_i k_i v_i^T
#include "weft/backend/cpu/fast/delta_tile.h"
#include "weft/backend/cpu/fast/loops/delta.h"

namespace weft::fast::WEFT_ISA {
namespace {

[[gnu::noinline]] void weigh_pairs(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  const float *qk = c.at(at.qk), skip = c.at(at.skip)[c.head];
  float* p = c.at(at.p);
  each_fade(c,
            [&](Index place, Index j, F fade) { store(p + place, fade * load(qk + place) * load(c.b + j)); });
  for (Index i = 0; i < c.count; ++i) p[i * delta_square + i] += skip;
}

}  // namespace

void state_forward(const DeltaJob& job, const DeltaTask& task, float* workspace) {
  Chunk c(job, task, workspace);
  prepare_numbers(c);
  for (Index first = 0; first < job.s; first += delta_chunk) {
    begin_chunk(c, first);
    for (c.head = 0; c.head < task.heads; ++c.head) {
      sum_logs(c);
      weigh_pairs(c);
      float* memory = c.at(job.places.memory) + c.head * c.held_size();
      load_values(c);
      answer(c, memory);
      weigh_rows(c);
      remember(c, memory, memory, c.slopes);
    }
  }
}

}  // namespace weft::fast::WEFT_ISA
