// The table of attention's loops of an instruction set that multiplies pairs of bf16. What is not bf16 goes
// through the loops of the set before it.
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::avx512_bf16 {

AttentionForward attention_forward;
AttentionBackward attention_backward;
AttentionMerge attention_merge;
AttentionExp2 attention_exp2;

}  // namespace weft::fast::avx512_bf16

namespace weft::fast::WEFT_ISA {

extern const AttentionLoops attention_loops;
const AttentionLoops attention_loops = {.forward = avx512_bf16::attention_forward,
                                        .backward = avx512_bf16::attention_backward,
                                        .merge = avx512_bf16::attention_merge,
                                        .exp2 = avx512_bf16::attention_exp2,
                                        .forward_pairs = attention_forward_pairs,
                                        .backward_pairs = attention_backward_pairs};

}  // namespace weft::fast::WEFT_ISA
