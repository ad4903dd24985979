// Optimizer states in files while a GPU computes: windows of them travel to it and back, and no bit differs.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/equal/gpus.h"
#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "tests/support/temporary.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Buckets so small that there are more windows than rooms for them.
Cut on_the_gpu(const ParallelConfig& parallel, const OffloadConfig& offload) {
  Cut cut{.parallel = parallel, .micro_batch = 4, .steps = 4};
  cut.parallel.bucket_elements = 700;
  cut.optimizer.offload = offload;
  cut.open = fast_gpu;
  return cut;
}

TEST(OffloadOfTheGpu, changes_no_bit) {
  const support::TemporaryDirectory folder;
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const ParallelConfig& parallel :
         {ParallelConfig{.dp = 1}, {.tp = 2, .dp = 1}, {.dp = 2, .zero = 1}, {.dp = 2, .zero = 3}}) {
      SCOPED_TRACE(
          text(words(precision)[std::size_t(precision)], " dp ", parallel.dp, " zero ", parallel.zero));
      ModelConfig config = shape_of("gpt2");
      config.precision = precision;
      const auto curve = [&](const OffloadConfig& offload) {
        return bits_of(config, on_the_gpu(parallel, offload));
      };
      const Curve whole = curve({});
      EXPECT_EQ(curve({.on = true, .directory = folder.path(), .fraction = 1, .buffers = 2}), whole);
      EXPECT_EQ(curve({.on = true, .fraction = 0, .buffers = 2}), whole);
      if (parallel.dp == 1) {
        EXPECT_EQ(curve({.on = true, .directory = folder.path(), .fraction = 0.5, .buffers = 1}), whole);
      }
    }
  EXPECT_EQ(join(emulated::take_reports(), "; "), "");
}

// Of what lies elsewhere a GPU has a window.
TEST(OffloadOfTheGpu, holds_what_the_counting_device_counts) {
  const support::TemporaryDirectory folder;
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const double fraction : {1.0, 0.5, 0.0}) {
      ModelConfig config = shape_of("gpt2");
      config.precision = precision;
      const std::string directory = fraction > 0 ? folder.path().string() : std::string();
      Cut cut = on_the_gpu({.dp = 1}, {.on = true, .directory = directory, .fraction = fraction});
      cut.counts_for = gpus_here().all.at(0);
      EXPECT_EQ(memory_difference(config, cut), "");
    }
}

}  // namespace
