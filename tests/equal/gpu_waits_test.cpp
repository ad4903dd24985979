// How often a step waits for the GPU: the GPU is idle from then until the host has asked for more.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::unique_ptr<Device> emulated_gpu() { return std::make_unique<CudaDevice>(); }

/// A training of so many steps, as late as may be: nothing is done before somebody waits for it.
std::uint64_t waits(int steps) {
  emulated::set_pace(emulated::lazy);
  Cut cut{{.dp = 1}, 2};
  cut.steps = steps;
  cut.open = emulated_gpu;
  const std::uint64_t before = emulated::meter().host_waits;
  (void)train(shape_of("gpt2"), cut);
  return emulated::meter().host_waits - before;
}

// Once would be enough. Copies to the GPU wait for the page that they had eight copies before, and a step of
// two microbatches makes more of them than that.
TEST(AStepOnTheGpu, waits_no_more_often_than_it_did) { EXPECT_LE(waits(4) - waits(3), 19U); }

}  // namespace
