// Where the processor is no x86, only the generic set is compiled and used.
#include "weft/backend/cpu/fast/instruction_set.h"

namespace weft::fast {

bool processor_runs(InstructionSet set) { return set == InstructionSet::generic; }

}  // namespace weft::fast
