// The table of attention's loops of an instruction set that multiplies pairs of bf16.
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

extern const AttentionLoops attention_loops;
const AttentionLoops attention_loops = {.forward = attention_forward,
                                        .backward = attention_backward,
                                        .merge = attention_merge,
                                        .exp2 = attention_exp2,
                                        .forward_pairs = attention_forward_pairs,
                                        .backward_pairs = attention_backward_pairs};

}  // namespace weft::fast::WEFT_ISA
