// The delta rule forward: chunk after chunk, of each all heads that share a key.
//
//   o_i = gamma_i S0^T q_i + sum over j <= i of fade_ij (q_i k_j) u_j
#include "weft/backend/cpu/fast/delta_tile.h"
#include "weft/backend/cpu/fast/loops/delta.h"

namespace weft::fast::WEFT_ISA {
void delta_forward(const DeltaJob& job, const DeltaTask& task, float* workspace) {
  Chunk c(job, task, workspace);
  prepare_numbers(c);
  float* const missing = c.at(job.places.missing);
  for (Index first = 0; first < job.s; first += delta_chunk) {
    begin_chunk(c, first);
    for (Index head = 0; head < task.heads; ++head) {
      begin_head(c, head);
      float* memory = c.at(job.places.memory) + head * c.held_size();
      correct(c, memory, missing);
      scale_rows(c, c.at(job.places.written), missing, c.b);
      answer(c, memory);
      remember(c, memory, memory, c.rest);
    }
  }
}

}  // namespace weft::fast::WEFT_ISA
