// How often a step waits for the GPU: the GPU is idle from then until the host has asked for more.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int layers = 2, microbatches = 4;

std::unique_ptr<Device> emulated_gpu() { return std::make_unique<CudaDevice>(); }

std::uint64_t waited() { return emulated::meter().host_waits; }

/// Most of three steps, as late as may be: nothing is done before somebody waits for it.
int waits_of_a_step(const std::string& family, OptimizerKind optimizer = OptimizerKind::adam) {
  emulated::set_pace(emulated::lazy);
  Cut cut{{.dp = 1}, 8 / microbatches};
  cut.steps = 3;
  cut.optimizer.kind = optimizer;
  cut.open = emulated_gpu;
  cut.waited = waited;
  return train(shape_of(family, layers), cut).most_waits;
}

// For losses, norm and counts, which decide whether and how far the weights go.
TEST(AStepOnTheGpu, waits_once) {
  for (const char* family : {"gpt2", "llama", "latent", "bert", "t5"})
    EXPECT_EQ(waits_of_a_step(family), 1) << family;
}

// How many rows an expert gets is read once a layer and microbatch, since shapes follow from it.
TEST(AStepOnTheGpu, waits_for_the_counts_of_every_layer_of_experts) {
  EXPECT_EQ(waits_of_a_step("mixture"), 1 + layers * microbatches);
}

// The norm of each tensor's step decides how far it goes, and stays on the GPU.
TEST(AStepOnTheGpu, waits_no_more_for_optimizers_that_look_at_tensors_norms) {
  for (const OptimizerKind kind : {OptimizerKind::lamb, OptimizerKind::muon})
    EXPECT_EQ(waits_of_a_step("gpt2", kind), 1) << words(kind)[std::size_t(kind)];
}

}  // namespace
