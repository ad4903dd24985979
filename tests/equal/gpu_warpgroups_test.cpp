// Steps whose attention and experts go by warpgroups, on GPUs of compute capability 9: those of the
// processor, in every family.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/equal/same_bits.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

Curve stepped(const ModelConfig& config, Cut cut, bool on_gpu) {
  cut.steps = 2;
  if (on_gpu)
    cut.open = []() -> std::unique_ptr<Device> {
      return std::make_unique<CudaDevice>(CudaOptions{.warpgroups = true});
    };
  return train(config, cut);
}

struct Case {
  const char* family;
  std::int64_t channels;
  ParallelConfig parallel = {.dp = 1};
};

TEST(StepsByWarpgroups, are_those_of_the_processor) {
  const emulated::CardsHere nine({.capability = 9});
  for (const Case& c : {Case{"gpt2", 64},
                        {"gpt2", 64, {.cp = 2, .dp = 1}},
                        {"llama", 128},
                        {"bert", 64},
                        {"t5", 64},
                        {"mixture", 136}}) {
    const Cut cut{c.parallel, 2};
    SCOPED_TRACE(text(c.family, " of ", c.channels, " channels, ", name_of(cut)));
    ModelConfig config = shape_of(c.family);
    config.precision = Precision::bf16;
    config.channels = c.channels;
    const std::uint64_t before = emulated::meter().products;
    const Curve found = stepped(config, cut, true);
    EXPECT_GT(emulated::meter().products, before);
    EXPECT_EQ(difference(found, stepped(config, cut, false), rounding_of(config, cut)), "");
    EXPECT_EQ(join(emulated::take_reports(), "; "), "");
  }
}

TEST(StepsByWarpgroups, have_the_bits_of_one_rank_in_exact_mode) {
  const emulated::CardsHere nine({.capability = 9});
  const auto exactly = [&](const ParallelConfig& parallel) {
    ModelConfig config = shape_of("mixture", 1);
    config.precision = Precision::bf16;
    config.channels = 64;
    Cut cut{.parallel = parallel, .micro_batch = 8, .steps = 1, .exact = true};
    cut.open = []() -> std::unique_ptr<Device> {
      return std::make_unique<CudaDevice>(CudaOptions{.exact = true, .warpgroups = true});
    };
    return train(config, cut);
  };
  const std::uint64_t before = emulated::meter().products;
  const Curve one = exactly({.dp = 1});
  EXPECT_GT(emulated::meter().products, before);
  expect_same_bits(exactly({.tp = 2, .dp = 1}), one, "tp 2");
  expect_same_bits(exactly({.cp = 2, .dp = 1}), one, "cp 2");
  EXPECT_EQ(join(emulated::take_reports(), "; "), "");
}

}  // namespace
