#include "weft/launch/faults.h"

#include <gtest/gtest.h>

#include "tests/support/refused.h"

using namespace weft;
using namespace weft::launch;

TEST(Faults, are_read_and_written_for_one_attempt) {
  const auto faults =
      read_faults("x", "kill@step=5,rank=2; hang@rank=1,step=3,attempt=1;slow@step=2,ms=20;kill@signal=11");
  ASSERT_EQ(faults.size(), 4u);
  EXPECT_EQ(faults[0], (Fault{.kind = FaultKind::kill, .step = 5, .rank = 2}));
  EXPECT_EQ(faults_of(faults, 1), "hang@step=3,rank=1,attempt=1");
  EXPECT_EQ(read_faults("x", faults_of(faults, 0)).size(), 3u);
  EXPECT_EQ(read_faults("x", faults_of(faults, 0))[1], faults[2]);
  EXPECT_EQ(faults_of(faults, 2), "");
}

TEST(Faults, say_what_is_wrong) {
  const auto says = [](const char* words) {
    return refused([&] { read_faults("launch: --inject", words); });
  };
  EXPECT_EQ(
      says("kil@step=5"),
      "launch: --inject: 'kil@step=5' is not kill@…, hang@…, slow@… or flip@…, as in kill@step=5,rank=2");
  EXPECT_EQ(says("kill@step=0"), "launch: --inject: step: '0' is not a whole number from 1 to 1099511627776");
  EXPECT_EQ(says("hang@ms=3"),
            "launch: --inject: 'ms' says nothing of hang; there are step, rank and attempt, signal of kill, "
            "ms of slow");
  EXPECT_EQ(says("slow@step=1"), "launch: --inject: 'slow@step=1' does not say by how much; add ms=20");
}
