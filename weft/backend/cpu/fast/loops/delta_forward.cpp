// The delta rule forward: chunk after chunk, of each all heads that share a key.
//
//   o_i = gamma_i S0^T q_i + sum over j <= i of fade_ij (q_i k_j) u_j
#include "weft/backend/cpu/fast/delta_tile.h"
#include "weft/backend/cpu/fast/loops/delta.h"

namespace weft::fast::WEFT_ISA {
namespace {

void answer(const Chunk& c, const float* memory) {
  const DeltaJob& job = c.job;
  const Index step = job.step_value, registers = c.registers_value();
  float *o = c.at(job.places.o), *p_rows = c.at(job.places.p);
  multiply<Start::zero>({o, step}, c.count, registers, ByRows{c.at(job.places.q), job.step}, {memory, step},
                        job.d);
  each_block(c.count, [&](Index p, Index rows) {
    multiply<Start::scaled>({o + p * step, step, c.gamma + p}, rows, registers,
                            ByRows{p_rows + p * delta_square, delta_square}, {c.at(job.places.written), step},
                            p + rows);
  });
  narrow_rows(job.o, c.head_offset(job.o), o, {c.count, job.d_value, step});
}

}  // namespace

void delta_forward(const DeltaJob& job, const DeltaTask& task, float* workspace) {
  Chunk c(job, task, workspace);
  prepare_numbers(c);
  float* const missing = c.at(job.places.missing);
  clear(c.at(job.places.memory), job.r * c.held_size());
  for (Index first = 0; first < job.s; first += delta_chunk) {
    begin_chunk(c, first);
    for (Index head = 0; head < job.r; ++head) {
      begin_head(c, head);
      float* memory = c.at(job.places.memory) + head * c.held_size();
      correct(c, memory, missing);
      scale_rows(c, c.at(job.places.written), missing, c.b);
      answer(c, memory);
      remember(c, memory, memory);
    }
  }
}

}  // namespace weft::fast::WEFT_ISA
