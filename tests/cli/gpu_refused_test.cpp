// Runs on a GPU in a program that has no kernels for one: what is planned, and what is refused at the door.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/cli/small_training.h"
#include "tests/cli/told.h"
#include "tests/support/refused.h"
#include "weft/cli/gpu_run.h"

using namespace weft;
using namespace weft::cli;
using testing::HasSubstr;

namespace {

Told told(const std::vector<std::string_view>& more, std::string_view verb = "train") {
  std::vector<std::string_view> words = small_training(verb, {"--train-iters", "2", "--device", "cuda"});
  words.insert(words.end(), more.begin(), more.end());
  return run_and_hear(words);
}

std::string carried(ModelConfig m, std::string_view device = "cuda:1") {
  return refused([&] { must_carry(device, m); });
}

}  // namespace

TEST(WithoutGpuKernels, a_run_on_one_is_planned_and_not_begun) {
  const Told plan = told({"--dry-run"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("  no GPU is here to compare with: device cuda, counted as for an H100\n"));
  const std::string none =
      "--device cuda: this build has no CUDA, and docs/gpu.md says how one is made that has; use cpu\n";
  for (const std::string_view verb : {"train", "selftest", "bench"}) {
    const Told t = told({}, verb);
    EXPECT_EQ(t.status, 2) << verb;
    EXPECT_THAT(t.err, HasSubstr(none)) << verb;
  }
}

TEST(GpuDoor, names_the_flag_of_what_a_gpu_cannot_do) {
  EXPECT_EQ(
      told({"--dry-run", "--optimizer-cpu-offload", "--offload-weights", "--offload-directory", "spill"}).err,
      "--offload-weights: layers of a GPU read weights in its memory; leave it out, or take --device cpu\n");
  EXPECT_EQ(told({"--dry-run", "--kv-channels", "288"}).err,
            "--kv-channels 288: attention takes heads of 256 at most on a GPU; take --device cpu\n");
}

TEST(GpuDoor, knows_the_widths_of_heads_and_latents) {
  ModelConfig m;
  m.latent = {.on = true, .plain_channels = 200, .turned_channels = 64};
  EXPECT_THAT(carried(m),
              HasSubstr("{model.latent.plain_channels} + {model.latent.turned_channels} = 264: "));
  m.latent = {.on = true, .value_channels = 257};
  EXPECT_THAT(carried(m), HasSubstr("{model.latent.value_channels} 257: "));
  EXPECT_EQ(carried(m, "cpu"), "");
}

// As wide as published models are: 25,600 is the widest of Megatron-LM's own.
TEST(GpuDoor, lets_in_norms_of_any_width) {
  ModelConfig m;
  m.hidden = 25600;
  m.heads = 160;
  m.channels = 160;
  m.qk_norm_whole = true;
  EXPECT_EQ(carried(m), "");
  m.latent = {.on = true, .query_rank = 9000, .rank = 8193};
  EXPECT_EQ(carried(m), "");
}

// Where no GPU is here to ask, the model is asked alone.
TEST(GpuDoor, knows_what_goes_by_warpgroups) {
  ModelConfig m;
  m.precision = Precision::bf16;
  m.latent = {.on = true, .plain_channels = 64, .turned_channels = 32, .value_channels = 64};
  EXPECT_EQ(why_no_warpgroups("cuda", m), "");
  m.latent.value_channels = 136;
  EXPECT_EQ(why_no_warpgroups("cuda", m), "attention of heads of 136 goes by warps");
  m.latent.plain_channels = 128;
  EXPECT_EQ(why_no_warpgroups("cuda", m), "attention of heads of 160 goes by warps");
  m.exact = true;
  EXPECT_EQ(why_no_warpgroups("cuda", m), "");
  m.exact = false;
  m.experts.count = 8;
  EXPECT_EQ(why_no_warpgroups("cuda", m), "");
  m.precision = Precision::f32;
  EXPECT_EQ(why_no_warpgroups("cuda", m), "what is computed in fp32 goes by warps");
}

TEST(GpuDoor, takes_devices_by_name_alone) {
  EXPECT_EQ(told({"--device", "gpu"}).err,
            "--device: 'gpu' is not one of cpu, cpu:fast, cpu:onednn, cpu:reference, cuda or cuda:N\n");
  EXPECT_EQ(told({"--device", "cuda:x"}).err,
            "--device: device cuda:x: expected cuda or cuda:N, N a number from 0 on\n");
  EXPECT_EQ(told({"--device", "meta"}).err,
            "--device: meta only counts, and nothing can be trained on it; --dry-run counts\n");
}
