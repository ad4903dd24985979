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

TEST(Split, refuses_what_is_not_three_weights) {
  EXPECT_EQ(refusal([] { split_weights("1,2,3,4"); }, Kind::usage),
            "{data.split} 1,2,3,4: 4 numbers, expected at most 3 (train, valid, test)");
  EXPECT_EQ(refusal([] { split_weights("0, 0"); }, Kind::usage),
            "{data.split} 0, 0: the weights sum to 0, expected one above 0");
  for (const char* word : {"1.2.3", "nan", "inf", "-1", "1e4", "none", "."})
    EXPECT_EQ(refusal([&] { split_weights(text(word, ", 4")); }, Kind::usage),
              text("{data.split} ", word, ", 4: ", word, " is not a number of 0 or more"));
}

TEST(Split, passes_over_quotes_that_no_shell_takes_off) {
  EXPECT_EQ(split_weights("'99,1,0'"), split_weights("99,1,0"));
  EXPECT_EQ(split_weights("\"99,1,0\""), split_weights("99,1,0"));
}
