// The attention loops as each instruction set's namespace holds them.
#pragma once

#include "weft/backend/cpu/fast/attention_job.h"

namespace weft::fast::WEFT_ISA {

void attention_forward(const AttentionJob&, std::int64_t row, std::int64_t head, std::int64_t from,
                       float* workspace);
void attention_backward(const AttentionJob&, AttentionShare, const AttentionTask&, float* workspace);
void attention_merge(const AttentionJob& into, const AttentionJob& part, std::int64_t row, std::int64_t head);
void attention_exp2(float* x, std::int64_t count);

/// Of the sets that multiply pairs of bf16.
void attention_forward_pairs(const AttentionJob&, std::int64_t row, std::int64_t head, std::int64_t from,
                             float* workspace);
void attention_backward_pairs(const AttentionJob&, AttentionShare, const AttentionTask&, float* workspace);

extern const AttentionLoops attention_loops;

}  // namespace weft::fast::WEFT_ISA
