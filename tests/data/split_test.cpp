#include "weft/data/split.h"

#include <gtest/gtest.h>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"

using namespace weft;
using namespace weft::data;

TEST(Split, shares_documents_as_megatron_does) {
  for (const Json& c : golden("split_ranges", "cases")) {
    const auto weights = split_weights(c["split"].get<std::string>());
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(weights[i], double_of_hex(c["vector_hex"][i]));
    const SplitMatrix matrix = split_matrix(weights);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(matrix[i].has_value(), !c["matrix"][i].is_null());
      if (!matrix[i]) continue;
      EXPECT_EQ(matrix[i]->begin, c["matrix"][i][0].get<double>());
      EXPECT_EQ(matrix[i]->end, c["matrix"][i][1].get<double>());
      for (const auto& [count, ranges] : c["ranges"].items()) {
        const Range range = range_of(*matrix[i], std::stoll(count));
        EXPECT_EQ(Json({range.begin, range.end}), ranges[i]) << c["split"] << " of " << count;
      }
    }
  }
}

TEST(Split, knows_the_older_rule) {
  for (const Json& c : golden("legacy_split", "cases"))
    for (const auto& [count, bounds] : c["ranges"].items())
      EXPECT_EQ(Json(legacy_split(c["split"].get<std::string>(), std::stoll(count))), bounds);
}

TEST(Split, refuses_what_is_not_three_weights) {
  EXPECT_EQ(refusal([] { split_weights("1,2,3,4"); }, Kind::usage),
            "{data.split} 1,2,3,4: 4 numbers, expected at most 3 (train, valid, test)");
  EXPECT_EQ(refusal([] { split_weights("none"); }, Kind::usage),
            "{data.split} none: the weights sum to 0, expected one above 0");
  EXPECT_EQ(refusal([] { split_weights("1.2.3, 4"); }, Kind::usage),
            "{data.split} 1.2.3, 4: 1.2.3 is not a number");
}
