// Finds the loops of an instruction set.
#include "weft/backend/cpu/fast/attention.h"
#include "weft/backend/cpu/fast/loops.h"

namespace weft::fast {

#if (WEFT_SETS & 1) != 0
namespace generic {
extern const Loops loops;
extern const AttentionLoops attention_loops;
}  // namespace generic
#endif
// For a set that was not built stands the one before it, or behind it where there is none.
// Said in cpu/product too: only the preprocessor chooses a namespace's other name, and inside its room's own.
#if (WEFT_SETS & 2) != 0
namespace avx2 {
extern const Loops loops;
extern const AttentionLoops attention_loops;
}  // namespace avx2
#elif (WEFT_SETS & 1) != 0
namespace avx2 = generic;
#endif
#if (WEFT_SETS & 4) != 0
namespace avx512 {
extern const Loops loops;
extern const AttentionLoops attention_loops;
}  // namespace avx512
#else
namespace avx512 = avx2;
#endif
#if (WEFT_SETS & 8) != 0
namespace avx512_bf16 {
extern const AttentionLoops attention_loops;
}
#else
namespace avx512_bf16 = avx512;
#endif
#if (WEFT_SETS & 16) != 0
namespace avx512_amx {
extern const AttentionLoops attention_loops;
}
#else
namespace avx512_amx = avx512_bf16;
#endif
#if (WEFT_SETS & 3) == 0
namespace avx2 = avx512;
#endif
#if (WEFT_SETS & 1) == 0
namespace generic = avx2;
#endif

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
