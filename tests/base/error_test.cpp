#include "weft/base/error.h"

#include <gtest/gtest.h>

using namespace weft;

TEST(Error, carries_its_kind_its_place_and_a_sentence) {
  try {
    fail(Kind::usage, "batch ", 10, " is not a multiple of ", 4);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Kind::usage);
    EXPECT_STREQ(e.what(), "batch 10 is not a multiple of 4");
    EXPECT_TRUE(std::string(e.where().file).ends_with("error_test.cpp"));
    EXPECT_GT(e.where().line, 0);
  }
}

TEST(Error, has_a_word_for_every_kind) {
  EXPECT_STREQ(word(Kind::usage), "usage");
  EXPECT_STREQ(word(Kind::comm), "communication");
}
