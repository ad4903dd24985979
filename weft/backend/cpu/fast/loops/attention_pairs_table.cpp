// The table of attention's loops of an instruction set that multiplies pairs of bf16. What is not bf16 goes
// through AVX-512's loops.
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::avx512 {

AttentionForward attention_forward;
AttentionBackward attention_backward;
AttentionMerge attention_merge;
AttentionExp2 attention_exp2;

}  // namespace weft::fast::avx512

namespace weft::fast::WEFT_ISA {

extern const AttentionLoops attention_loops;
const AttentionLoops attention_loops = {.forward = avx512::attention_forward,
                                        .backward = avx512::attention_backward,
                                        .merge = avx512::attention_merge,
                                        .exp2 = avx512::attention_exp2,
                                        .forward_pairs = attention_forward_pairs,
                                        .backward_pairs = attention_backward_pairs};

}  // namespace weft::fast::WEFT_ISA
