// Where the processor is no x86, there is one set of loops.
#include "weft/backend/cpu/product/loops.h"

namespace weft::product {

namespace generic {
extern const Loops loops;
}

const Loops& loops(fast::InstructionSet) { return generic::loops; }
const PairLoops* pair_loops(fast::InstructionSet) { return nullptr; }

}  // namespace weft::product
