#include "weft/pipe/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/refused.h"
#include "weft/pipe/letters.h"
#include "weft/pipe/rehearse.h"

using namespace weft;
using namespace weft::pipe;

TEST(Schedule, one_f_one_b_has_the_textbook_bubble_and_memory) {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {p, 2 * p, 4 * p}) {
      const auto seen = rehearse(with_transfers(one_f_one_b(p, m)));
      EXPECT_EQ(seen.duration, 3 * (m + p - 1));
      for (int r = 0; r < p; ++r) EXPECT_EQ(seen.peak_remembered[std::size_t(r)], std::min(p - r, m));
    }
}

TEST(Schedule, zero_bubble_cuts_the_bubble_to_a_third_in_the_same_memory) {
  for (const int p : {2, 4, 8}) {
    const int m = 3 * p;
    const auto seen = rehearse(with_transfers(zero_bubble_h1(p, m)));
    EXPECT_EQ(seen.duration, 3 * m + (p - 1));
    for (const int peak : seen.peak_remembered) EXPECT_LE(peak, p);
  }
}

TEST(Schedule, interleaving_divides_the_bubble_by_the_chunks) {
  for (const int p : {2, 4, 8})
    for (const int v : {2, 4}) {
      const int m = 2 * p;
      EXPECT_EQ(rehearse(with_transfers(interleaved(p, v, m))).duration, 3 * (m * v + p - 1));
    }
}

TEST(Schedule, zero_bubble_v_has_no_bubble_but_the_start_in_the_memory_of_1f1b) {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {2 * p, 3 * p + 1}) {
      const auto seen = rehearse(with_transfers(zero_bubble_v(p, m)));
      EXPECT_EQ(seen.duration, 6 * m + p - 1) << p << " ranks, " << m << " microbatches";
      for (const int peak : seen.peak_remembered) EXPECT_LE(peak, 2 * p);
    }
}

TEST(Schedule, zero_bubble_v_runs_with_any_number_of_microbatches) {
  for (int p = 1; p <= 5; ++p)
    for (int m = 1; m <= 12; ++m) EXPECT_NO_THROW(rehearse(with_transfers(zero_bubble_v(p, m))));
}

TEST(Schedule, interleaving_takes_uneven_groups_as_megatron_does) {
  EXPECT_NO_THROW(rehearse(with_transfers(interleaved(4, 2, 10, 6)), {}, Delivery::in_order));
  EXPECT_NO_THROW(rehearse(with_transfers(interleaved(4, 3, 16, 8)), {}, Delivery::in_order));
  EXPECT_EQ(refused([] { (void)interleaved(4, 2, 10); }),
            "interleaved: 10 microbatches in groups of 4 leave a group smaller than 4 ranks");
}

// NCCL hands letters over in no other order.
TEST(Schedule, letters_are_read_as_they_were_sent_in_all_that_are_made) {
  for (const int p : {2, 3, 4})
    for (const int m : {p, 2 * p, 3 * p}) {
      for (const Schedule& s :
           {gpipe(p, m), one_f_one_b(p, m), zero_bubble_h1(p, m), zero_bubble_v(p, m), interleaved(p, 2, m),
            interleaved(p, 3, m), forwards_only({0, 1, 1, 0}, m), forwards_then_backwards({0, 1, 0, 1}, m)}) {
        EXPECT_EQ(overtaken_letter(with_transfers(s)), "") << s.name << " of " << p << ", " << m;
        EXPECT_EQ(overtaken_letter(posted_early(with_transfers(s))), "")
            << s.name << " of " << p << ", " << m;
      }
    }
}

TEST(Schedule, a_letter_that_another_one_overtakes_is_found) {
  Schedule s = with_transfers(gpipe(2, 2));
  std::vector<Action>& second = s.program[1];
  const auto first = std::ranges::find(second, Action{Do::recv_activation, 1, 0}),
             other = std::ranges::find(second, Action{Do::recv_activation, 1, 1});
  std::swap(*first, *other);
  EXPECT_EQ(overtaken_letter(s),
            "rank 0 sends rank 1 the activation of microbatch 0 for stage 1, which reads the activation of "
            "microbatch 1 for stage 1 first");
}

TEST(Schedule, receives_begin_one_computation_before_they_are_needed) {
  const Schedule s = posted_early(with_transfers(one_f_one_b(2, 2)));
  const std::vector<Action> second{{Do::post_activation, 1, 0}, {Do::recv_activation, 1, 0},
                                   {Do::forward, 1, 0},         {Do::post_activation, 1, 1},
                                   {Do::backward, 1, 0},        {Do::send_gradient, 1, 0},
                                   {Do::recv_activation, 1, 1}, {Do::forward, 1, 1},
                                   {Do::backward, 1, 1},        {Do::send_gradient, 1, 1}};
  EXPECT_EQ(s.program[1], second);
}

TEST(Schedule, puts_forwards_beside_backwards_of_other_microbatches) {
  const Schedule one = beside_each_other(with_transfers(one_f_one_b(1, 3, 1)));
  EXPECT_EQ(one.program[0], (std::vector<Action>{{Do::forward, 0, 0},
                                                 {Do::forward, 0, 1},
                                                 {Do::backward, 0, 0},
                                                 {Do::forward, 0, 2},
                                                 {Do::backward, 0, 1},
                                                 {Do::backward, 0, 2}}));
  const Schedule two = beside_each_other(posted_early(with_transfers(interleaved(2, 2, 4, 0, 1))));
  const std::vector<Action>& second = two.program[1];
  const auto pair = std::ranges::find(second, Action{Do::backward, 3, 1});
  ASSERT_GE(second.end() - pair, 3);
  EXPECT_EQ(*(pair - 1), (Action{Do::forward, 1, 2}));
  EXPECT_FALSE(computes((pair - 2)->what));
  EXPECT_EQ(*(pair + 1), (Action{Do::send_activation, 1, 2}));
  EXPECT_EQ(*(pair + 2), (Action{Do::send_gradient, 3, 1}));
}

// Also where a pair is one piece of work, of which nobody gets half before the other is done.
TEST(Schedule, pairs_have_the_bubble_of_interleaving_for_one_pass_more) {
  for (const int p : {2, 3, 4, 8})
    for (const int v : {2, 3})
      for (const int m : {p, 2 * p, 3 * p}) {
        const auto seen =
            rehearse(beside_each_other(posted_early(with_transfers(interleaved(p, v, m, 0, 1)))));
        EXPECT_EQ(seen.duration, 3 * (m * v + p - 1)) << p << " " << v << " " << m;
        for (const int peak : seen.peak_remembered) EXPECT_LE(peak, 2 * (p - 1) + (v - 1) * p + 2);
      }
  EXPECT_NO_THROW(rehearse(beside_each_other(with_transfers(interleaved(4, 2, 10, 6, 1)))));
  EXPECT_NO_THROW(rehearse(beside_each_other(with_transfers(interleaved(4, 3, 16, 8, 1)))));
}

TEST(Schedule, evaluation_runs_wherever_stages_live) {
  for (const auto& home : {std::vector<int>{0, 1, 2}, {0, 1, 1, 0}, {0, 1, 0, 1}, {1, 0, 1}, {2, 0, 1, 1}})
    for (int m = 1; m <= 5; ++m) {
      EXPECT_NO_THROW(rehearse(with_transfers(forwards_then_backwards(home, m))));
      EXPECT_EQ(forwards_only(home, m).stages(), int(home.size()));
    }
}

TEST(Rehearsal, refuses_sums_out_of_order) {
  Schedule s = zero_bubble_h1(1, 2);
  std::swap(s.program[0][2], s.program[0][5]);
  EXPECT_EQ(refused([&] { (void)rehearse(s); }),
            "zb-h1: backward_weight of stage 0, microbatch 0 comes after microbatch 1; sums are taken in "
            "ascending order, once each");
}

TEST(Rehearsal, names_what_every_stuck_rank_waits_for) {
  Schedule s = one_f_one_b(2, 1);
  std::swap(s.program[0][0], s.program[0][1]);
  EXPECT_EQ(refused([&] { (void)rehearse(with_transfers(s)); }),
            "1f1b: deadlock\n  rank 0 waits to recv_gradient of stage 0, microbatch 0\n  rank 1 waits to "
            "recv_activation of stage 1, microbatch 0");
}

TEST(Rehearsal, refuses_work_that_is_left_out) {
  Schedule s = one_f_one_b(1, 2);
  s.program[0].pop_back();
  EXPECT_EQ(refused([&] { (void)rehearse(s); }), "1f1b: stage 0, microbatch 1 is not done exactly once");
}
