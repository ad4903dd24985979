// The attention loops as each instruction set's namespace holds them.
#pragma once

#include "weft/backend/cpu/fast/attention_job.h"

namespace weft::fast::WEFT_ISA {

AttentionForward attention_forward;
AttentionBackward attention_backward;
AttentionMerge attention_merge;
AttentionExp2 attention_exp2;
/// Of the sets that multiply pairs of bf16.
AttentionForward attention_forward_pairs;
AttentionBackward attention_backward_pairs;

extern const AttentionLoops attention_loops;

}  // namespace weft::fast::WEFT_ISA
