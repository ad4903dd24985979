// Smaller sizes that a plan would name are sizes that a run accepts.
#include <gtest/gtest.h>

#include "tests/plan/planned.h"
#include "weft/plan/changes.h"

using namespace weft;
using namespace weft::testing;

// Of a small batch stages that take turns would have too few microbatches.
TEST(Sizes, of_a_batch_are_those_that_stages_can_share_out) {
  const TrainConfig c = tiny({.pp = 2, .dp = 1, .virtual_stages = 2});
  std::vector<std::string> batches;
  for (const Changes& changes : changes_of_sizes(c))
    for (const Change& change : changes) {
      EXPECT_NO_THROW(plan_for(change.config)) << change.flags;
      if (change.flags.starts_with("{batch.global}")) batches.push_back(change.flags);
    }
  EXPECT_EQ(batches, (std::vector<std::string>{"{batch.global} 8", "{batch.global} 4", "{batch.global} 2"}));
}
