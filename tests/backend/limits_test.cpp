// The machine's limits as shares are taken of them.
#include "weft/backend/cpu/limits.h"

#include <gtest/gtest.h>

#include "weft/backend/cpu/device.h"

namespace weft {
namespace {

TEST(Limits, are_measured_and_leave_no_memory_held) {
  CpuDevice device({.threads = 1});
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Limits limits = measure_limits(device, dtype, {.side = 64, .block = 1 << 16});
    // A megaflop and a megabyte a second are far below any processor.
    EXPECT_GT(limits.product_flops, 1e6);
    EXPECT_GT(limits.copy_bytes, 1e6);
  }
  EXPECT_EQ(device.memory().total, 0);
}

}  // namespace
}  // namespace weft
