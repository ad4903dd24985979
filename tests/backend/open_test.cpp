// Devices by name, and the names that are refused.
#include "weft/backend/open.h"

#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "weft/backend/cpu/onednn/engine.h"
#include "weft/backend/cpu/threads.h"
#include "weft/backend/gpus.h"
#include "weft/tensor/host.h"
#include "weft/tensor/kernels.h"

namespace weft {
namespace {

TEST(OpenDevice, opens_the_processor_and_the_counter) {
  for (const char* name : {"cpu", "cpu:fast", "cpu:reference"})
    EXPECT_STREQ(open_device(name)->name(), "cpu");
  const auto meta = open_device("meta", {.threads = 3});
  EXPECT_FALSE(meta->holds_numbers());
  EXPECT_EQ(meta->threads(), 3);
}

TEST(OpenDevice, opens_onednn_or_says_that_this_build_has_none) {
  if (open_onednn())
    EXPECT_STREQ(open_device("cpu:onednn")->name(), "cpu");
  else
    EXPECT_EQ(refused([] { open_device("cpu:onednn"); }),
              "device cpu:onednn: this build has no oneDNN (libdnnl-dev); use cpu");
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
  if (!gpus_here().built_with.empty()) GTEST_SKIP() << "this build has CUDA";
  const std::string missing = "this build has no CUDA, and docs/gpu.md says how one is made that has";
  for (const char* name : {"cuda", "cuda:1"})
    EXPECT_EQ(refused([&] { open_device(name); }), "device cuda: " + missing + "; use cpu");
  EXPECT_EQ(refused([] { (void)free_on_gpu(1); }), "device cuda:1: " + missing);
  EXPECT_EQ(gpus_here().missing, missing);
  EXPECT_TRUE(gpus_here().all.empty());
}

TEST(OpenDevice, knows_which_gpu_a_rank_takes) {
  EXPECT_TRUE(names_gpu("cuda"));
  EXPECT_TRUE(names_gpu("cuda:12"));
  EXPECT_FALSE(names_gpu("cpu"));
  EXPECT_FALSE(names_gpu("cudas"));
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"})
    EXPECT_EQ(refused([&] { names_gpu(name); }),
              text("device ", name, ": expected cuda or cuda:N, N a number from 0 on"));
  EXPECT_EQ(gpu_of_rank("cuda", 5, 4), 1);  // in turn
  EXPECT_EQ(gpu_of_rank("cuda", 5, 0), 0);
  EXPECT_EQ(gpu_of_rank("cuda:3", 5, 4), 3);
}

TEST(OpenDevice, says_what_it_knows) {
  EXPECT_EQ(refused([] { open_device("gpu"); }),
            "device gpu: unknown, expected cpu, cpu:onednn, cpu:fast, cpu:reference, cuda, cuda:N or meta");
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
