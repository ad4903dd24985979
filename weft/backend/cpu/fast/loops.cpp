// Finds the loops of an instruction set.
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
namespace avx512_bf16 {
extern const Loops loops;
}

const Loops& loops(InstructionSet set) {
  return choose<Loops>(set, {&generic::loops, &avx2::loops, &avx512::loops, &avx512_bf16::loops});
}

}  // namespace weft::fast
