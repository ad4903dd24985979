// weft train --exact on the emulated GPU: losses are the same bits under every layout, whichever way ranks
// speak; and the processor's, but for rounding.
#include <gmock/gmock.h>

#include "tests/cli/gpu_trained.h"

using namespace weft;
using namespace weft::cli;

namespace {

Words exact(Words more) {
  more.insert(more.end(), {"--exact", "--train-iters", "2"});
  return more;
}

/// Of ranks that say that they speak so.
void expect_the_bits_of_one(const std::string& way) {
  emulated::set_patience(60);  // a rank's GPU waits while another's is emulated
  const Words words = tiny_words();
  const Training one = trained(words, exact({}), "cuda");
  ASSERT_EQ(one.losses.size(), 2U) << one.err;
  EXPECT_EQ(parted(one, trained(words, exact({}), "cpu"), 2e-5), "");
  for (const Words& layout : {Words{"--tensor-model-parallel-size", "2", "--sequence-parallel"},
                              {"--pipeline-model-parallel-size", "2", "--micro-batch-size", "1"},
                              {"--context-parallel-size", "2"},
                              {"--use-distributed-optimizer", "--micro-batch-size", "1"}}) {
    SCOPED_TRACE(layout.front());
    Words more = layout;
    more.insert(more.end(), {"--ranks", "2"});
    const Training run = trained(words, exact(more), "cuda");
    EXPECT_EQ(run.losses, one.losses) << run.err;
    EXPECT_THAT(run.err, ::testing::HasSubstr(way));
    EXPECT_EQ(found(), "");
  }
}

}  // namespace

TEST(GpuTraining, gives_the_same_bits_in_exact_mode_on_two_ranks_of_one_gpu) {
  expect_the_bits_of_one("ranks speak through the host: ranks 0 and 1 share ");
}

// NCCL adds f32 in an order of its own, so there ranks exchange their terms and add them as trees.
TEST(GpuTraining, gives_the_same_bits_in_exact_mode_on_two_gpus) {
  const Machine two({.count = 2});
  expect_the_bits_of_one("ranks speak from GPU to GPU by NCCL 2.28.0");
}
