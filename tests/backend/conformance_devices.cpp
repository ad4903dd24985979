// The devices that must conform: a line each. The reference is not among them: it is what they are compared
// with.
#include "tests/backend/conformance.h"
#include "weft/backend/cpu/onednn/engine.h"
#include "weft/backend/open.h"

namespace weft::conformance {
namespace {

Subject named(const std::string& device, bool exact = false) {
  const auto plain = std::make_shared<PlainCalls>();
  return {.name = device + (exact ? " exact" : ""),
          .open =
              [=](int threads) {
                return open_device(device, {.threads = threads, .exact = exact, .plain_calls = plain.get()});
              },
          .plain = plain};
}

Subject of_onednn() {
  Subject subject = named("cpu:onednn");
  if (!open_onednn()) subject.missing = "this build has no oneDNN";
  return subject;
}

/// The same ones for every test, which each asks again.
const std::vector<Subject>& devices() {
  static const std::vector<Subject> all{named("cpu:fast"), of_onednn(), named("cpu", true)};
  return all;
}

INSTANTIATE_TEST_SUITE_P(Devices, Conformance, ::testing::ValuesIn(devices()), spelled);
INSTANTIATE_TEST_SUITE_P(Devices, InExactMode, ::testing::Values(named("cpu", true)), spelled);
INSTANTIATE_TEST_SUITE_P(Devices, ConformanceInDoubles, ::testing::ValuesIn(devices()), spelled);

}  // namespace
}  // namespace weft::conformance
