// Trainings that may not part at all.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/equal/run.h"

namespace weft::testing {

inline void expect_same_bits(const Curve& a, const Curve& b, const std::string& what) {
  EXPECT_EQ(a.losses, b.losses) << what;
  EXPECT_EQ(a.norms, b.norms) << what;
  EXPECT_EQ(a.greatest_scores, b.greatest_scores) << what;
  EXPECT_EQ(a.evaluations, b.evaluations) << what;
  EXPECT_TRUE(a.copies_agree) << what;
}

}  // namespace weft::testing
