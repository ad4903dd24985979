// Finds the loops of an instruction set.
#include "weft/backend/cpu/fast/attention.h"
#include "weft/backend/cpu/fast/loops.h"

namespace weft::fast {

namespace generic {
extern const Loops loops;
extern const AttentionLoops attention_loops;
}  // namespace generic
namespace avx2 {
extern const Loops loops;
extern const AttentionLoops attention_loops;
}  // namespace avx2
namespace avx512 {
extern const Loops loops;
extern const AttentionLoops attention_loops;
}  // namespace avx512
namespace avx512_bf16 {
extern const AttentionLoops attention_loops;
}
namespace avx512_amx {
extern const AttentionLoops attention_loops;
}

const Loops& loops(InstructionSet set) {
  // Products of bf16 pairs are of no use to these.
  return choose<Loops>(set, {&generic::loops, &avx2::loops, &avx512::loops, &avx512::loops, &avx512::loops});
}

const AttentionLoops& attention_loops(InstructionSet set) {
  return choose<AttentionLoops>(set,
                                {&generic::attention_loops, &avx2::attention_loops, &avx512::attention_loops,
                                 &avx512_bf16::attention_loops, &avx512_amx::attention_loops});
}

}  // namespace weft::fast
