#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <iostream>
#include <vector>

#include "tests/cli/told.h"
#include "weft/base/error.h"
#include "weft/cli/verb.h"

using namespace weft;
using namespace weft::cli;
using testing::EndsWith;
using testing::HasSubstr;

namespace {

int fine(Args args) { return static_cast<int>(args.size()); }
int mistaken(Args) { fail(Kind::usage, "plan: no model was named"); }
int broken(Args) { fail(Kind::shape, "matmul: [2, 3] by [4, 5]"); }
int unforeseen(Args) { throw std::out_of_range("vector"); }
int speaking(Args) {
  for (int i = 0; i < 10000; ++i) std::cout << "many words\n";
  return 0;
}
VerbHelp about() { return {.usage = "weft fine [N]", .examples = {{"weft fine 3", "three"}}, .topics = {}}; }

constexpr Verb table[] = {{"fine", "does nothing", fine, about},
                          {"mistaken", "is used wrongly", mistaken, about},
                          {"broken", "contradicts itself", broken, about},
                          {"unforeseen", "breaks otherwise", unforeseen, about},
                          {"speaking", "says much", speaking, about}};

Told told(std::vector<std::string_view> words) { return run_and_hear(words, table); }

}  // namespace

TEST(Run, hands_a_verb_what_follows_its_name) { EXPECT_EQ(told({"fine", "a", "b", "c"}).status, 3); }

TEST(Run, says_a_persons_mistake_in_one_sentence_and_exits_with_2) {
  const Told t = told({"mistaken"});
  EXPECT_EQ(t.status, 2);
  EXPECT_EQ(t.err, "plan: no model was named\n");
}

TEST(Run, says_where_anything_else_broke_and_exits_with_1) {
  const Told t = told({"broken"});
  EXPECT_EQ(t.status, 1);
  EXPECT_THAT(t.err, HasSubstr("matmul: [2, 3] by [4, 5] [shape, "));
  EXPECT_THAT(t.err, HasSubstr("run_test.cpp:"));
  EXPECT_THAT(told({"unforeseen"}).err, EndsWith("vector [a failure weft did not foresee]\n"));
}

TEST(Run, is_not_done_where_standard_output_took_less_than_was_written) {
  const int full = ::open("/dev/full", O_WRONLY), before = ::dup(STDOUT_FILENO);
  ASSERT_GE(full, 0);
  ::dup2(full, STDOUT_FILENO);
  testing::internal::CaptureStderr();
  const int status = run(table, std::vector<std::string_view>{"speaking"});
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  ::close(full);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weft: standard output took less than was written to it, as a full disk does; what arrived is "
            "cut off\n");
  EXPECT_EQ(told({"speaking"}).status, 0);
}

TEST(Run, offers_the_nearest_verb) {
  const Told t = told({"fien"});
  EXPECT_EQ(t.status, 2);
  EXPECT_EQ(t.err, "weft: 'fien' is not a verb, did you mean fine; weft help lists them\n");
}

TEST(Run, shows_examples_first_when_asked_for_help) {
  const Told t = told({"fine", "--help"});
  EXPECT_EQ(t.status, 0);
  EXPECT_EQ(t.out,
            "weft fine: does nothing\n\nusage: weft fine [N]\n\nexamples:\n  # three\n  weft fine 3\n");
}

TEST(Run, without_a_verb_lists_them_and_exits_with_2) {
  const Told t = told({});
  EXPECT_EQ(t.status, 2);
  EXPECT_THAT(t.err, HasSubstr("  mistaken      is used wrongly\n"));
}
