// Names, and the order in which instruction sets are preferred.
#include "weft/backend/cpu/fast/instruction_set.h"

namespace weft::fast {

const char* name(InstructionSet set) {
  switch (set) {
    case InstructionSet::generic:
      return "generic";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
    case InstructionSet::avx512_bf16:
      return "avx512_bf16";
    case InstructionSet::avx512_amx:
      return "avx512_amx";
  }
  return "?";
}

bool is_built(InstructionSet set) { return (WEFT_SETS >> int(set) & 1) != 0; }

bool runs_here(InstructionSet set) { return is_built(set) && processor_runs(set); }

std::vector<InstructionSet> all_here() {
  std::vector<InstructionSet> here;
  for (const InstructionSet set : instruction_sets)
    if (runs_here(set)) here.push_back(set);
  return here;
}

}  // namespace weft::fast
