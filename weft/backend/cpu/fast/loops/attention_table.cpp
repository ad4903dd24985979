// The table of attention's loops of an instruction set that multiplies no pairs of bf16.
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

extern const AttentionLoops attention_loops;
const AttentionLoops attention_loops = {.forward = attention_forward,
                                        .backward = attention_backward,
                                        .merge = attention_merge,
                                        .exp2 = attention_exp2};

}  // namespace weft::fast::WEFT_ISA
