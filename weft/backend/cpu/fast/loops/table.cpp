// The table of this instruction set's loops.
#include "weft/backend/cpu/fast/loops.h"

namespace weft::fast::WEFT_ISA {

extern const ElementwiseLoops elementwise;

extern const Loops loops;
const Loops loops = {elementwise};

}  // namespace weft::fast::WEFT_ISA
