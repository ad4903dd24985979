// Devices by name, and the names that are refused.
#include "weft/backend/open.h"

#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "weft/backend/cpu/threads.h"
#include "weft/tensor/host.h"
#include "weft/tensor/kernels.h"

namespace weft {
namespace {

TEST(OpenDevice, opens_the_processor_and_the_counter) {
  for (const char* name : {"cpu", "cpu:onednn", "cpu:fast", "cpu:reference"})
    EXPECT_STREQ(open_device(name)->name(), "cpu");
  const auto meta = open_device("meta", {.threads = 3});
  EXPECT_FALSE(meta->holds_numbers());
  EXPECT_EQ(meta->threads(), 3);
}

TEST(OpenDevice, counts_what_falls_back_on_plain_loops) {
  PlainCalls calls;
  const auto device = open_device("cpu", {.threads = 1, .plain_calls = &calls});
  const Tensor x = from_host<float>(*device, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  device->kernels().scale(x, 2);
  EXPECT_EQ(calls, PlainCalls());
  const Tensor across = x.permute({1, 0});  // its last dimension is not in lines
  device->kernels().scale(across, 0.5F);
  EXPECT_EQ(calls, (PlainCalls{{"scale", 1}}));
  EXPECT_EQ(to_host<float>(x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(OpenDevice, takes_all_processors_unless_told) {
  EXPECT_EQ(open_device("cpu")->threads(), processors());
  EXPECT_EQ(open_device("meta")->threads(), processors());
  EXPECT_EQ(open_device("cpu", {.threads = 1})->threads(), 1);
}

TEST(OpenDevice, says_what_this_build_has_not_got) {
  EXPECT_EQ(refused([] { open_device("cuda"); }), "device cuda: this build has no CUDA; use cpu");
  EXPECT_EQ(refused([] { open_device("cuda:1"); }), "device cuda:1: this build has no CUDA; use cpu");
}

TEST(OpenDevice, says_what_it_knows) {
  EXPECT_EQ(refused([] { open_device("gpu"); }),
            "device gpu: unknown, expected cpu, cpu:onednn, cpu:fast, cpu:reference or meta");
}

TEST(OpenDevice, refuses_impossible_numbers_of_threads) {
  EXPECT_EQ(refused([] { open_device("cpu", {.threads = -1}); }),
            "cpu device: -1 threads asked for, expected 1 to 1024, or 0 for all");
  EXPECT_EQ(refused([] { open_device("meta", {.threads = 1025}); }),
            "meta device: 1025 threads asked for, expected 1 to 1024, or 0 for all");
}

TEST(OpenDevice, the_counter_reads_as_zeros) {
  const auto meta = open_device("meta");
  const Tensor x = from_host(*meta, {3}, std::vector<float>{1, 2, 3});
  EXPECT_EQ(to_host<float>(x), (std::vector<float>{0, 0, 0}));
}

}  // namespace
}  // namespace weft
