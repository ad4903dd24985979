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

INSTANTIATE_TEST_SUITE_P(Devices, Conformance,
                         ::testing::Values(named("cpu:fast"), named("cpu:onednn"), named("cpu", true)),
                         spelled);

}  // namespace
}  // namespace weft::conformance
