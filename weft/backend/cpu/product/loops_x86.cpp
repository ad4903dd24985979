// Which loops an x86 processor runs.
#include "weft/backend/cpu/product/loops.h"

namespace weft::product {

#if (WEFT_SETS & 1) != 0
namespace generic {
extern const Loops loops;
}
#endif
// For a set that was not built stands the one before it, or behind it where there is none.
// Said in cpu/fast too: only the preprocessor chooses a namespace's other name, and inside its room's own.
#if (WEFT_SETS & 2) != 0
namespace avx2 {
extern const Loops loops;
}
#elif (WEFT_SETS & 1) != 0
namespace avx2 = generic;
#endif
#if (WEFT_SETS & 4) != 0
namespace avx512 {
extern const Loops loops;
}
#else
namespace avx512 = avx2;
#endif
#if (WEFT_SETS & 8) != 0
namespace avx512_bf16 {
extern const Loops loops;
extern const PairLoops pair_loops;
}  // namespace avx512_bf16
#else
namespace avx512_bf16 = avx512;
#endif
#if (WEFT_SETS & 3) == 0
namespace avx2 = avx512;
#endif
#if (WEFT_SETS & 1) == 0
namespace generic = avx2;
#endif

const Loops& loops(fast::InstructionSet set) {
  return fast::choose<Loops>(
      set, {&generic::loops, &avx2::loops, &avx512::loops, &avx512_bf16::loops, &avx512_bf16::loops});
}

const PairLoops* pair_loops([[maybe_unused]] fast::InstructionSet set) {
#if (WEFT_SETS & 8) != 0
  if (set >= fast::InstructionSet::avx512_bf16) return &avx512_bf16::pair_loops;
#endif
  return nullptr;
}

}  // namespace weft::product
