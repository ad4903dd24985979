#include "weft/launch/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace weft;
using namespace weft::launch;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

PulseReading training(int rank, double beat, double longest = 0.1) {
  return {.beat = beat,
          .rank = rank,
          .section = Section::training,
          .step = 7,
          .steps_done = 5,
          .longest_step = longest,
          .circles = {}};
}

PulseReading waiting_since(int rank, double beat) {
  PulseReading out = training(rank, beat);
  out.word = Spoken::all_reduce;
  return out;
}

constexpr std::uint64_t all = 1;

Doing at_work(int rank, std::uint64_t words) {
  return {.rank = rank,
          .section = int(Section::training),
          .step = 5,
          .still = 12,
          .circles = {{.id = all, .words = words, .place = rank}}};
}

Doing waiting(int rank, std::int64_t number) {
  Doing out = at_work(rank, std::uint64_t(number) + 1);
  out.word = int(Spoken::all_reduce);
  out.number = number;
  out.circle = all;
  return out;
}

/// What is said of ranks that have done so much in each of so many windows of ten seconds.
std::vector<std::string> said_of(const std::vector<std::vector<double>>& paces, int kin_of_last = 0) {
  Paces p(10);
  std::vector<std::string> out;
  std::vector<double> worked(paces[0].size());
  for (std::size_t window = 0; window <= paces.size(); ++window) {
    for (std::size_t rank = 0; rank < worked.size(); ++rank) {
      if (window > 0) worked[rank] += 100 * paces[window - 1][rank];
      const Pace pace{.rank = int(rank),
                      .kin = rank + 1 == worked.size() ? kin_of_last : 0,
                      .steps = std::int64_t(100 * window),
                      .worked = worked[rank]};
      for (std::string& line : p.note(pace, 10.0 * double(window))) out.push_back(std::move(line));
    }
  }
  return out;
}

}  // namespace

TEST(Watch, falls_still_when_nobody_moves_for_thrice_the_longest_step) {
  Watch watch({.least = 5});
  EXPECT_FALSE(watch.look({training(0, 100, 4), training(1, 99, 4)}, 100.5).still);
  double now = 100.5;
  while (now + 0.5 < 112) EXPECT_FALSE(watch.look({training(0, 100, 4)}, now += 0.5).still);
  const Watch::Stillness seen = watch.look({training(0, 100, 4)}, 112.2);
  EXPECT_TRUE(seen.still);
  EXPECT_NEAR(seen.limit, 12, 1e-9);
  EXPECT_FALSE(watch.look({training(0, 112.5, 4)}, 112.7).still);
}

TEST(Watch, waits_at_least_as_long_as_it_is_told) {
  Watch watch({.least = 5});
  double now = 100;
  while (now < 104.6) EXPECT_FALSE(watch.look({training(0, 100, 0.001)}, now += 0.5).still);
  EXPECT_TRUE(watch.look({training(0, 100, 0.001)}, 105.1).still);
}

TEST(Watch, is_patient_while_nothing_is_learned_and_outside_of_steps) {
  Watch watch({.least = 5, .before = 600});
  PulseReading saving = training(0, 100);
  saving.section = Section::saving;
  PulseReading fresh = training(0, 100);
  fresh.steps_done = 2;
  for (double now = 100; now < 690; now += 1) {
    EXPECT_FALSE(watch.look({saving}, now).still);
    EXPECT_FALSE(watch.look({fresh}, now).still);
  }
}

TEST(Watch, learns_how_long_a_save_takes) {
  Watch watch({.least = 5, .before = 600});
  PulseReading saving = training(0, 100);
  saving.section = Section::saving;
  saving.was_here = 3;
  saving.longest_here = 7;
  double now = 100;
  while (now + 0.5 < 121) EXPECT_FALSE(watch.look({saving}, now += 0.5).still);
  EXPECT_TRUE(watch.look({saving}, 121.2).still);
}

TEST(Watch, keeps_to_a_limit_that_a_person_set) {
  Watch watch({.limit = 2});
  for (double now = 100; now < 102; now += 0.2) EXPECT_FALSE(watch.look({training(0, 100)}, now).still);
  EXPECT_TRUE(watch.look({training(0, 100)}, 102.3).still);
}

TEST(Watch, blames_nobody_when_it_was_held_up_itself) {
  Watch watch({.limit = 2});
  EXPECT_FALSE(watch.look({training(0, 100)}, 100.1).still);
  EXPECT_FALSE(watch.look({training(0, 100)}, 500).still);  // the machine slept
  EXPECT_FALSE(watch.look({training(0, 100)}, 500.2).still);
}

TEST(Watch, gives_ranks_ten_times_as_long_to_begin) {
  Watch watch({.limit = 1});
  for (double now = 100; now < 110; now += 0.5) EXPECT_FALSE(watch.look({}, now).still);
  EXPECT_TRUE(watch.look({}, 110.5).still);
}

TEST(Hang, names_who_is_missing_and_where_the_others_wait) {
  const Hang hang = hang_of({waiting(0, 41), waiting(1, 41), at_work(2, 41), waiting(3, 41)}, 5);
  EXPECT_EQ(hang.rank, 2);
  EXPECT_EQ(hang.what, "hangs in step 5 (training): no sign of life for 12.0 s, where 5.0 s are much");
  EXPECT_THAT(hang.lines, ElementsAre("rank 0 waits in all_reduce 41 for rank 2, in step 5 (training)",
                                      "rank 1 waits in all_reduce 41 for rank 2, in step 5 (training)",
                                      "rank 3 waits in all_reduce 41 for rank 2, in step 5 (training)"));
}

TEST(Hang, a_chain_of_waits_leads_to_its_end) {
  // 0 waits for a letter of 1, which waits in a circle for 2.
  Doing first = at_work(0, 3);
  first.word = int(Spoken::recv);
  first.circle = all;
  first.peer = 1;
  first.number = 9;
  const Hang hang = hang_of({first, waiting(1, 3), at_work(2, 3)}, 5);
  EXPECT_EQ(hang.rank, 2);
  EXPECT_THAT(hang.lines, ElementsAre("rank 0 waits in recv tag 9 for rank 1, in step 5 (training)",
                                      "rank 1 waits in all_reduce 3 for ranks 0, 2, in step 5 (training)"));
}

TEST(Hang, says_when_all_wait_for_each_other) {
  Doing one = at_work(0, 3), other = at_work(1, 3);
  one.word = other.word = int(Spoken::recv);
  one.circle = other.circle = all;
  one.peer = 1;
  other.peer = 0;
  const Hang hang = hang_of({one, other}, 5);
  EXPECT_EQ(hang.rank, 0);
  EXPECT_THAT(hang.what, HasSubstr("; all ranks wait for each other"));
  EXPECT_THAT(hang.lines, testing::SizeIs(2));
}

// A signal that stops a rank often finds it waiting: it has said its part, and the others have gone on.
TEST(Hang, a_rank_that_waits_where_all_have_come_is_the_missing_one) {
  const Hang hang = hang_of({waiting(0, 7), waiting(1, 6), waiting(2, 7)}, 5);
  EXPECT_EQ(hang.rank, 1);
  EXPECT_EQ(hang.what,
            "hangs in step 5 (training): no sign of life for 12.0 s, where 5.0 s are much; all have come to "
            "where it waits");
  EXPECT_THAT(hang.lines, ElementsAre("rank 0 waits in all_reduce 7 for rank 1, in step 5 (training)",
                                      "rank 1 waits in all_reduce 6, in step 5 (training)",
                                      "rank 2 waits in all_reduce 7 for rank 1, in step 5 (training)"));
}

TEST(Hang, more_than_one_may_be_missing) {
  const Hang hang = hang_of({at_work(0, 3), at_work(1, 3), waiting(2, 3)}, 5);
  EXPECT_EQ(hang.rank, 0);
  EXPECT_THAT(hang.lines[0], HasSubstr("rank 1 waits for nobody, in step 5 (training); it is missing too"));
}

TEST(Hang, of_nobody_is_no_crash) { EXPECT_EQ(hang_of({}, 1).rank, 0); }

TEST(Paces, a_fifth_more_than_the_others_in_two_windows_is_slow) {
  EXPECT_THAT(
      said_of({{.02, .02, .026}, {.02, .021, .0245}}),
      ElementsAre(
          "launch: rank 2 is slow: 24.5 ms of work a step, where 20.0 ms are usual, in the last 20 s"));
}

TEST(Paces, less_than_a_fifth_or_one_window_is_not) {
  EXPECT_THAT(said_of({{.02, .02, .0235}, {.02, .021, .0235}, {.02, .02, .0235}}), IsEmpty());
  EXPECT_THAT(said_of({{.02, .02, .03}, {.02, .02, .02}, {.02, .02, .03}}), IsEmpty());
}

TEST(Paces, a_slow_rank_is_named_once_until_it_was_quick_again) {
  const std::vector<double> slow{.02, .02, .03}, quick{.02, .02, .02};
  EXPECT_EQ(said_of({slow, slow, slow, slow}).size(), 1u);
  EXPECT_EQ(said_of({slow, slow, quick, slow, slow}).size(), 2u);
}

// Of three ranks that work 20 s in each step of 30 s, one takes 25 s of it from some step on.
TEST(Paces, a_quarter_more_is_seen_within_five_minutes_though_steps_are_long) {
  for (int slow_from = 4; slow_from < 10; ++slow_from) {
    Paces p(60);
    double seen = 0;
    for (double now = 0; seen == 0 && now < 900; now += 15) {
      const int steps = int(now) / 30;
      for (int rank = 0; rank < 3; ++rank) {
        const double more = rank == 1 ? 5.0 * std::max(0, steps - slow_from) : 0;
        const Pace pace{.rank = rank, .steps = steps, .worked = 20.0 * steps + more};
        if (!p.note(pace, now).empty()) seen = now;
      }
    }
    EXPECT_GT(seen, 30 * slow_from);
    EXPECT_LE(seen, 30 * slow_from + 300) << "slow from step " << slow_from;
  }
}

TEST(Paces, few_steps_of_a_short_window_say_nothing) {
  Paces p(4);
  for (const int steps : {0, 5, 9, 14})
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_THAT(p.note({.rank = rank, .steps = steps, .worked = (rank == 1 ? 2.0 : 1.0) * steps}, steps),
                  IsEmpty());
}

TEST(Paces, ranks_of_other_stages_do_other_work) {
  EXPECT_THAT(said_of({{.02, .02, .04}, {.02, .02, .04}}, 1), IsEmpty());
}

TEST(Paces, a_rank_without_company_is_compared_with_its_best) {
  EXPECT_THAT(said_of({{.02, .03}, {.02, .04}, {.02, .04}}, 1),
              ElementsAre(HasSubstr("rank 1 is slow: 40.0 ms of work a step, where 30.0 ms are usual")));
}

TEST(Gone, are_ranks_for_which_all_others_have_waited_for_a_while) {
  const std::vector<PulseReading> ranks{waiting_since(0, 10), training(1, 20), waiting_since(2, 18)};
  EXPECT_TRUE(all_wait_but({1}, ranks, 20));
  EXPECT_FALSE(all_wait_but({1}, ranks, 19.9)) << "rank 2 has just begun to wait";
  EXPECT_FALSE(all_wait_but({2}, ranks, 30)) << "rank 1 is at work";
  EXPECT_TRUE(all_wait_but({0, 1, 2}, ranks, 20)) << "nobody is left";
}
