// Where the processor is no x86, only the generic set is compiled and used.
#include "weft/backend/cpu/fast/instruction_set.h"

namespace weft::fast {

bool runs_here(InstructionSet set) { return set == InstructionSet::generic; }

}  // namespace weft::fast
