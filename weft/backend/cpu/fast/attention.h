// Fused attention on the processor: never a score matrix in memory, results that do not depend on the number
// of threads.
#pragma once

#include <cstdint>

#include "weft/backend/cpu/fast/attention_job.h"
#include "weft/backend/cpu/fast/instruction_set.h"
#include "weft/tensor/args.h"

namespace weft::fast {

const AttentionLoops& attention_loops(InstructionSet set);

/// As Kernels::attention and its backward, in f32, bf16 or f16; o may be f32 whatever q is (so that parts can
/// be merged without rounding in between). Threads and workspace come from the tensors' device.
void attention(const AttentionLoops& loops, const AttentionOut& out, const Attended& in,
               const AttentionArgs& how);
void attention_backward(const AttentionLoops& loops, const AttentionGrads& grads, const Tensor& dout,
                        const AttentionOut& out, const Attended& in, const AttentionArgs& how);
void merge_attention(const AttentionLoops& loops, const AttentionOut& into, const AttentionOut& part);

/// Bytes that the calls above ask of the device, from shapes and threads alone: 0 where there is nothing to
/// do.
std::int64_t attention_workspace(const Attended& in, const AttentionArgs& how, int threads);
std::int64_t attention_backward_workspace(const AttentionGrads& grads, const Attended& in,
                                          const AttentionArgs& how, int threads);

}  // namespace weft::fast
