#include "weft/backend/cpu/fast/loops.h"

namespace weft::fast {

namespace generic {
extern const Loops loops;
}
namespace avx2 {
extern const Loops loops;
}
namespace avx512 {
extern const Loops loops;
}

const Loops& loops(InstructionSet set) {
  // Products of bf16 pairs are of no use to these.
  return choose<Loops>(set, {&generic::loops, &avx2::loops, &avx512::loops, &avx512::loops, &avx512::loops});
}

}  // namespace weft::fast
