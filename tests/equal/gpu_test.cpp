// Trainings on the emulated GPU, alone and on several ranks that speak through the host, against the
// processor's. The watcher must have found nothing.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::unique_ptr<Device> emulated_gpu() { return std::make_unique<CudaDevice>(); }

std::vector<Cut> cuts() {
  return {{{.dp = 1}, 2},          {{.tp = 2, .dp = 1}, 2},   {{.tp = 2, .dp = 1, .sequence = true}, 2},
          {{.pp = 2, .dp = 1}, 1}, {{.dp = 2, .zero = 1}, 1}, {{.cp = 2, .dp = 1}, 2}};
}

class OnTheGpu : public ::testing::TestWithParam<std::tuple<std::string, Cut>> {};

/// Losses are near 3.4, so this is 8 steps of f32 for them: products and reductions add in another order.
constexpr Rounding rounding{.loss = 2e-6, .norm = 1e-4};

TEST_P(OnTheGpu, steps_are_those_of_the_processor) {
  auto [name, cut] = GetParam();
  const ModelConfig config = shape_of(name);
  cut.steps = 3;
  const Curve expected = train(config, cut);
  cut.open = emulated_gpu;
  const Curve found = train(config, cut);
  EXPECT_EQ(difference(found, expected, rounding), "");
  EXPECT_NE(found.losses.front(), found.losses.back());
  EXPECT_TRUE(found.copies_agree);
  EXPECT_EQ(join(emulated::take_reports(), "; "), "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, OnTheGpu,
                         ::testing::Combine(::testing::Values("gpt2", "llama"), ::testing::ValuesIn(cuts())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + name_of(std::get<1>(test.param));
                         });

}  // namespace
