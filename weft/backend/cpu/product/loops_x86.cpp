// Which loops an x86 processor runs.
#include "weft/backend/cpu/product/loops.h"

namespace weft::product {

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

const Loops& loops(fast::InstructionSet set) {
  return fast::choose<Loops>(
      set, {&generic::loops, &avx2::loops, &avx512::loops, &avx512_bf16::loops, &avx512_bf16::loops});
}

}  // namespace weft::product
