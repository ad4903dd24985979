// Where the processor is no x86, every set is compiled alike and only the generic one is used.
#include "weft/backend/cpu/fast/instruction_set.h"

namespace weft::fast {

bool runs_here(InstructionSet set) { return set == InstructionSet::generic; }

}  // namespace weft::fast
