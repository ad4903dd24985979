#include "weft/plan/partners.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

using namespace weft;

// By names, as people read them: another axis has its row here.
TEST(Partners, are_told_from_the_axes_of_a_circle) {
  std::map<Partners, std::vector<std::string>> told;
  for (const Axes along : circles_of(ParallelLayout({.tp = 2, .dp = 2, .ep = 2})))
    told[partners_along(along)].push_back(names(along));
  using Names = std::vector<std::string>;
  EXPECT_EQ(told[Partners::tensor], Names{"tp"});
  EXPECT_EQ(told[Partners::context], Names{"cp"});
  EXPECT_EQ(told[Partners::pipeline], Names{"pp"});
  EXPECT_EQ(told[Partners::data], (Names{"dp", "cp, dp", "edp"}));
  EXPECT_EQ(told[Partners::experts], (Names{"etp", "ep", "etp, ep"}));
  EXPECT_EQ(told[Partners::several], (Names{"tp, pp", "tp, cp", "tp, dp", "tp, cp, dp", "etp, ep, pp"}));
}
