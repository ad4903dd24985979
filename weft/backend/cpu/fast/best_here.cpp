#include <algorithm>
#include <iterator>

#include "weft/backend/cpu/fast/instruction_set.h"
#include "weft/base/error.h"

namespace weft::fast {

InstructionSet best_of(const std::vector<InstructionSet>& run, const std::vector<InstructionSet>& built) {
  if (!run.empty()) return run.back();
  std::string names;
  for (const InstructionSet set : built) names += text(names.empty() ? "" : ", ", name(set));
  fail(Kind::usage, "this program has loops for ", names,
       " alone, which this processor does not run: it was made on another kind (make demo); make program "
       "builds "
       "for every kind");
}

InstructionSet best_here() {
  std::vector<InstructionSet> built;
  std::ranges::copy_if(instruction_sets, std::back_inserter(built), is_built);
  return best_of(all_here(), built);
}

}  // namespace weft::fast
