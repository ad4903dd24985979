// Schedules by name and out of text.
#include "weft/pipe/choose.h"

#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"

using namespace weft;
using namespace weft::pipe;

TEST(Choose, takes_1f1b_or_interleaved_unless_told_otherwise) {
  EXPECT_EQ(make_schedule({.ranks = 2, .microbatches = 4}).name, "1f1b");
  EXPECT_EQ(make_schedule({.ranks = 2, .chunks = 2, .microbatches = 4}).name, "interleaved");
  for (const std::string_view name : schedule_names) {
    const int chunks = name == "interleaved" || name == "zb-v" ? 2 : 1;
    EXPECT_EQ(
        make_schedule({.name = std::string(name), .ranks = 2, .chunks = chunks, .microbatches = 4}).name,
        name);
  }
}

TEST(Choose, refuses_what_a_schedule_has_no_place_for) {
  const auto with = [](const std::string& name, int chunks) {
    return refused([&] { (void)make_schedule({.name = name, .ranks = 2, .chunks = chunks}); });
  };
  EXPECT_EQ(with("gpipe", 2),
            "pipeline schedule gpipe has one stage a rank, found 2: interleaved and zb-v take more");
  EXPECT_EQ(with("interleaved", 1),
            "pipeline schedule interleaved needs virtual stages: {parallel.virtual_stages} 2 or "
            "more");
  EXPECT_EQ(with("zb-v", 3), "pipeline schedule zb-v has two stages a rank, found 3");
  EXPECT_EQ(
      with("1f2b", 1),
      "pipeline schedule '1f2b' is neither a file nor one of gpipe, 1f1b, interleaved, zb-h1, zb-v, did "
      "you mean 1f1b");
}

TEST(Choose, text_gives_every_schedule_back) {
  for (const Schedule& s :
       {gpipe(3, 4), one_f_one_b(3, 5), interleaved(2, 3, 4), zero_bubble_h1(4, 8), zero_bubble_v(3, 7)}) {
    const Schedule back = read_schedule(write_schedule(s), s.name);
    EXPECT_EQ(back.home, s.home);
    EXPECT_EQ(back.program, s.program);
    EXPECT_EQ(back.microbatches, s.microbatches);
  }
}

TEST(Choose, text_looks_like_this) {
  EXPECT_EQ(write_schedule(one_f_one_b(2, 2)),
            "# 1f1b, microbatches a step: 2\nstages 0 1\nrank 0: F0 F1 B0 B1\nrank 1: F0 B0 F1 B1\n");
  EXPECT_EQ(write_schedule(zero_bubble_v(1, 1)),
            "# zb-v, microbatches a step: 1\nstages 0 0\nrank 0: F0@0 F0@1 I0@1 W0@1 I0@0 W0@0\n");
}

TEST(Choose, a_rank_may_have_many_lines_and_comments) {
  const Schedule s = read_schedule(
      "# mine\nstages 0 1 # two\n\nrank 1: F0 B0\nrank 0: F0\nrank 1: F1 B1\nrank 0: F1 B0 B1\n", "mine.txt");
  EXPECT_EQ(s.program, one_f_one_b(2, 2).program);
}

TEST(Choose, says_what_is_wrong_with_a_text_and_where) {
  const auto with = [](const std::string& script) {
    return refused([&] { (void)read_schedule(script, "mine.txt"); });
  };
  EXPECT_EQ(with(""), "mine.txt: no line 'stages …' says where stages live");
  EXPECT_EQ(with("stages 0"), "mine.txt: no line 'rank N: …' says what is done");
  EXPECT_EQ(with("stages"), "mine.txt line 1: 'stages' names no rank");
  EXPECT_EQ(with("stages 0 2"), "mine.txt line 1: rank 1 holds no stage");
  EXPECT_EQ(with("stages 0\nstages 0"), "mine.txt line 2: a second line 'stages …'");
  EXPECT_EQ(with("rank 0: F0"), "mine.txt line 1: the line 'stages …' comes first");
  EXPECT_EQ(with("stages 0\n\nrank 1: F0"), "mine.txt line 3: '1' is not a number from 0 to 0");
  EXPECT_EQ(with("stages 0\nrank 0 F0"), "mine.txt line 2: 'rank N:' is not how this line begins");
  EXPECT_EQ(with("stages 0\nworker 0: F0"), "mine.txt line 2: 'worker' begins no line: stages or rank does");
  EXPECT_EQ(with("stages 0\nrank 0: X0"),
            "mine.txt line 2: 'X0' is no computation: F0 forward, B0 backward, I0 and W0 its two halves");
  EXPECT_EQ(with("stages 0\nrank 0: F"), "mine.txt line 2: '' is not a number from 0 to 65535");
  EXPECT_EQ(with("stages 0 0\nrank 0: F0"),
            "mine.txt line 2: 'F0': rank 0 holds several stages, say which: F0@0");
  EXPECT_EQ(with("stages 0 1\nrank 0: F0@1"), "mine.txt line 2: 'F0@1': stage 1 lives on rank 1");
  EXPECT_EQ(with("stages 0\nrank 0: F0"), "mine.txt: stage 0, microbatch 0 is not done exactly once");
  EXPECT_EQ(
      with("stages 0 1\nrank 0: F0 I0 B0\nrank 1: F0 B0"),
      "mine.txt: rank 0 waits twice for send_gradient of stage 1, microbatch 0, which rank 1 does once");
}

TEST(Choose, refuses_a_file_for_other_ranks_or_microbatches) {
  const support::TemporaryDirectory folder;
  const std::string path = (folder / "mine.txt").string();
  write_atomically(path, write_schedule(one_f_one_b(2, 2)));
  EXPECT_EQ(make_schedule({.name = path, .ranks = 2, .microbatches = 2}).program, one_f_one_b(2, 2).program);
  EXPECT_EQ(refused([&] { (void)make_schedule({.name = path, .ranks = 4, .microbatches = 2}); }),
            path + ": written for 2 pipeline ranks, 4 are here");
  EXPECT_EQ(refused([&] { (void)make_schedule({.name = path, .ranks = 2, .microbatches = 8}); }),
            path + ": written for 2 microbatches a step, 8 are here");
}
