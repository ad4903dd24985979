// weft train on the emulated GPU with optimizer states in files: the bits of a run that has them in memory,
// and of one that stopped and went on.
#include <gmock/gmock.h>

#include "tests/cli/gpu_trained.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;

TEST(GpuTraining, has_the_same_bits_with_states_in_files) {
  const TemporaryDirectory folder;
  const auto in_files = [&](Words more) {
    more.insert(more.end(),
                {"--bf16", "--optimizer-cpu-offload", "--offload-directory", folder.path().string()});
    return trained(tiny_words(), more, "cuda");
  };
  const Training whole = trained(tiny_words(), {"--bf16"}, "cuda"), spilled = in_files({});
  EXPECT_EQ(spilled.losses.size(), 3U) << spilled.err;
  EXPECT_EQ(spilled.losses, whole.losses);
  EXPECT_EQ(in_files({"--optimizer-offload-fraction", "0.5"}).losses, whole.losses);
  EXPECT_EQ(trained(tiny_words(), {"--bf16", "--optimizer-cpu-offload"}, "cuda").losses, whole.losses);
  const std::string at = (folder / "ck").string();
  const Training first = in_files({"--save", at, "--save-interval", "2", "--exit-interval", "2"}),
                 second = in_files({"--load", at});
  ASSERT_EQ(first.losses.size(), 2U) << first.err;
  EXPECT_EQ(second.losses.at(3), whole.losses.at(3));
  // And one that has them in memory goes on from it, on either kind of device.
  EXPECT_EQ(trained(tiny_words(), {"--bf16", "--load", at}, "cuda").losses, second.losses);
  EXPECT_EQ(trained(tiny_words(), {"--bf16", "--load", at}, "cpu").losses.size(), 1U);
  EXPECT_EQ(found(), "");
}
