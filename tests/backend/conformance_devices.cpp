// The devices that must conform: a line each. The reference is not among them: it is what they are compared
// with.
#include "tests/backend/conformance.h"
#include "weft/backend/open.h"

namespace weft::conformance {
namespace {

Subject named(const std::string& device, bool exact = false) {
  return {device + (exact ? " exact" : ""),
          [=](int threads) { return open_device(device, {.threads = threads, .exact = exact}); }};
}

/// The same ones for every test, which each asks again.
const std::vector<Subject>& devices() {
  static const std::vector<Subject> all{named("cpu:fast"), named("cpu:onednn"), named("cpu", true)};
  return all;
}

INSTANTIATE_TEST_SUITE_P(Devices, Conformance, ::testing::ValuesIn(devices()), spelled);
INSTANTIATE_TEST_SUITE_P(Devices, ConformanceInDoubles, ::testing::ValuesIn(devices()), spelled);

}  // namespace
}  // namespace weft::conformance
