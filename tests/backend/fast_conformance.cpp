// The fast kernels against the oracle, with every instruction set that this machine has but the best, which
// is that of the device "cpu".
#include "tests/backend/conformance.h"
#include "tests/backend/fast_device.h"

namespace weft::conformance {
namespace {

std::vector<Subject> all_instruction_sets() {
  std::vector<Subject> out;
  for (const fast::InstructionSet set : fast::all_here())
    if (set != fast::best_here()) {
      const auto plain = std::make_shared<PlainCalls>();
      out.push_back(
          {.name = std::string("fast ") + fast::name(set),
           .open =
               [=](int threads) { return std::make_unique<testing::FastDevice>(set, threads, plain.get()); },
           .plain = plain});
    }
  return out;
}

/// The same ones for every test, which each asks again.
const std::vector<Subject>& instruction_sets() {
  static const std::vector<Subject> all = all_instruction_sets();
  return all;
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, Conformance, ::testing::ValuesIn(instruction_sets()), spelled);
INSTANTIATE_TEST_SUITE_P(InstructionSets, ConformanceInDoubles, ::testing::ValuesIn(instruction_sets()),
                         spelled);

}  // namespace
}  // namespace weft::conformance
