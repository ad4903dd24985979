// What other verbs do with the emulated GPU, whose memory a run must fit into, and which it takes.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/cli/gpu_trained.h"
#include "tests/cli/small_training.h"
#include "tests/support/refused.h"
#include "weft/backend/gpus.h"
#include "weft/backend/open.h"
#include "weft/cli/bench_train.h"
#include "weft/cli/doctor.h"
#include "weft/cli/gpu_run.h"
#include "weft/cli/verbs.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/norm.h"
#include "weft/train/validate.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

TrainConfig tiny(int ranks) {
  TrainConfig c;
  c.model.layers = 1;
  c.model.hidden = 16;
  c.model.heads = 2;
  c.model.sequence = c.model.max_positions = 8;
  c.model.vocabulary = 29;
  c.data.mock = true;
  c.data.index = IndexKind::keyed;
  c.batch.micro = 1;
  c.length.iterations = 3;
  c.rate.peak = 1e-3;
  c.run.device = "cuda";
  c.run.ranks = ranks;
  complete(c, ranks);
  return c;
}

}  // namespace

TEST(Gpu, says_the_processors_words) {
  const TemporaryDirectory folder;
  const std::string at = (folder / "ck").string();
  const Training run = trained(
      tiny_words(), {"--tokenizer-type", "NullTokenizer", "--save", at, "--save-interval", "3"}, "cpu");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto said = [&](const std::string& device) {
    return told(generate_verb(), {at, "--prompt", "3 1 4", "--tokens", "5", "--greedy", "--device", device});
  };
  const Told expected = said("cpu"), on_gpu = said("cuda");
  EXPECT_EQ(on_gpu.status, 0) << on_gpu.err;
  EXPECT_EQ(on_gpu.out, expected.out);
  EXPECT_THAT(expected.out, StartsWith("3 1 4"));
  EXPECT_EQ(found(), "");
}

TEST(Gpu, trains_a_layout_as_one_rank) {
  const Told t = run_and_hear(small_training(
      "selftest", {"--seq-length", "32", "--micro-batch-size", "1", "--lr", "1e-2", "--train-iters", "2",
                   "--tensor-model-parallel-size", "2", "--ranks", "2", "--device", "cuda"}));
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does\n"));
  EXPECT_EQ(found(), "");
}

TEST(Gpu, is_measured_by_kinds_of_work) {
  const TrainBench bench = bench_training(tiny(2), 2, {.side = 32, .block = 1 << 12});
  EXPECT_EQ(bench.device, "cuda");
  EXPECT_EQ(bench.steps.size(), 2U);
  EXPECT_GT(bench.limits.product_flops, 0);
  EXPECT_GT(bench.limits.copy_bytes, 0);
  EXPECT_GT(bench.memory.total_peak, 0);
  EXPECT_EQ(bench.timed.size(), 2U);
  double all = 0;
  for (const Work kind : {Work::product, Work::attention, Work::norm, Work::elementwise, Work::loss,
                          Work::embedding, Work::optimizer}) {
    EXPECT_GT(bench.kinds[std::size_t(kind)].seconds, 0) << name(kind);
    EXPECT_GT(bench.kinds[std::size_t(kind)].calls, 0) << name(kind);
    all += bench.kinds[std::size_t(kind)].seconds;
  }
  // Clocks of two ranks on a busy machine are not so exact that parts must be less than the whole.
  EXPECT_LT(all, 2 * std::reduce(bench.timed.begin(), bench.timed.end()));
  EXPECT_EQ(limit_sizes("cuda:1").side, 8192);
  EXPECT_EQ(limit_sizes("cpu").side, LimitSizes().side);
  EXPECT_EQ(found(), "");
}

TEST(Gpu, must_have_room_for_a_run) {
  const Machine small({.count = 1, .free = 1 << 20});
  const Training run = trained(tiny_words(), {"--ranks", "2", "--micro-batch-size", "1"}, "cuda");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, StartsWith("the 2 ranks on cuda:0 need "));
  EXPECT_THAT(run.err, HasSubstr(", and cuda:0 leaves 1.0 MiB; "));
  const Training all_the_same = trained(tiny_words(), {"--no-memory-check", "--train-iters", "1"}, "cuda");
  EXPECT_EQ(all_the_same.status, 0) << all_the_same.err;
}

TEST(Gpu, is_taken_by_ranks_in_turn) {
  const Machine two({.count = 2, .free = 1 << 20});
  TrainConfig c = tiny(3);
  const auto rooms = rooms_here(c, {});
  ASSERT_EQ(rooms.size(), 2U);
  EXPECT_EQ(rooms[0].ranks.count(), 2);  // 0 and 2
  EXPECT_EQ(rooms[0].ranks.gpu, "cuda:0");
  EXPECT_EQ(rooms[1].ranks.first, 1);
  EXPECT_EQ(rooms[1].ranks.count(), 1);
  EXPECT_EQ(rooms[1].free.by, "cuda:1");
  EXPECT_EQ(rooms[1].free.bytes, 1 << 20);
  c.run.device = "cuda:1";
  const auto one = rooms_here(c, {});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].ranks.count(), 3);
  EXPECT_EQ(one[0].ranks.gpu, "cuda:1");
}

TEST(Gpu, must_be_there) {
  const Training third = trained(tiny_words(), {}, "cuda:2");
  EXPECT_EQ(third.err, "--device cuda:2: this machine has 1 of them\n");
  const Machine none({.count = 0});
  EXPECT_EQ(trained(tiny_words(), {}, "cuda").err, "--device cuda: the driver shows no GPU; use cpu\n");
}

TEST(Gpu, is_told_of_by_the_doctor) {
  const std::string known =
      "; every kernel runs on an emulator in the tests and compiles for sm_80, sm_90a and sm_100a; of GPUs "
      "one H100 has run them for us, alone (docs/gpu.md)";
  {
    const Machine two({.count = 2, .free = std::size_t(3) << 30});
    EXPECT_EQ(gpu_kernels().sentence,
              "built with an emulated GPU; from GPU to GPU: NCCL 2.28.0; cuda:0 has compute capability 8.0, "
              "2 multiprocessors and 3.0 GiB free; "
              "cuda:1 has compute capability 8.0, 2 multiprocessors and 3.0 GiB free" +
                  known);
  }
  const Machine none({.count = 0});
  EXPECT_EQ(gpu_kernels().sentence, "built with an emulated GPU, but the driver shows no GPU" + known);
}
