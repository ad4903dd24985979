#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"
#include "weft/ops/elementwise.h"
#include "weft/train/suspicion.h"

using namespace weft;
using namespace weft::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// Runs whose third step goes wrong in one way, and that judge it.
class RefusedRun : public ::testing::Test {
 protected:
  TrainConfig wrong(InjectedFault kind) const {
    TrainConfig c = saving_often(folder_.path());
    c.checkpoint.interval = 100;
    c.guard.faults = FaultCheck::judge;
    c.guard.inject_every = 3;
    c.guard.injected = kind;
    return c;
  }
  /// From where the run before stopped, without a new fault.
  TrainConfig again(InjectedFault kind) const {
    TrainConfig c = going_on(wrong(kind));
    c.guard.inject_every = 0;
    return c;
  }
  fs::path beside() const { return folder_.path() / "step_00000002/suspicion.json"; }

  support::TemporaryDirectory folder_;
};

struct End {
  std::string sentence;
  Refused::Known known = Refused::Known::not_yet;
  int remembered = 0;
};

End end_of(const TrainConfig& config, const std::string& machine = "here") {
  try {
    train(config, {.machine = machine});
  } catch (const Refused& refused) {
    return {refused.what(), refused.known(), refused.to_remember() ? 1 : 0};
  }
  return {"it was not refused"};
}

TrainConfig two_ranks(TrainConfig c) {
  c.run.ranks = 2;
  c.parallel.dp = 0;
  return completed(c);
}

}  // namespace

TEST_F(RefusedRun, ends_where_a_fault_has_passed_with_the_step_before_saved) {
  const End end = end_of(wrong(InjectedFault::passing));
  EXPECT_EQ(end.known, Refused::Known::machine_erred);
  EXPECT_THAT(end.sentence, HasSubstr("step 3: the loss was not finite and came out as "));
  EXPECT_THAT(end.sentence, HasSubstr("a passing fault of a machine; the weights are as they were before"));
  EXPECT_TRUE(fs::exists(folder_.path() / "step_00000002/COMPLETE"));
  EXPECT_FALSE(fs::exists(beside()));
}

TEST_F(RefusedRun, goes_on_from_there_with_the_bits_of_an_unbroken_run) {
  TrainConfig whole = wrong(InjectedFault::passing);
  whole.guard.inject_every = 0;
  whole.checkpoint.save.clear();
  const Told plain = train(whole);
  static_cast<void>(end_of(wrong(InjectedFault::passing)));
  const Told rest = train(again(InjectedFault::passing));
  EXPECT_THAT(rest.losses, ElementsAre(plain.losses[2], plain.losses[3], plain.losses[4], plain.losses[5]));
}

TEST_F(RefusedRun, asks_for_another_machine_where_the_fault_is_there_again) {
  const End end = end_of(wrong(InjectedFault::lasting));
  EXPECT_EQ(end.known, Refused::Known::not_yet);
  EXPECT_EQ(end.sentence,
            "step 3: the loss is not finite, injected by {guard.inject_every}, on rank 0, and so it is again "
            "when the step "
            "is done again; go on from the checkpoint before it on another machine, to tell a lasting fault "
            "of this one "
            "from the numbers' own");
  const auto suspicion = read_suspicion(beside().parent_path());
  ASSERT_TRUE(suspicion);
  EXPECT_EQ(suspicion->step, 3);
  EXPECT_THAT(suspicion->machines, ElementsAre("here"));
}

TEST_F(RefusedRun, asks_again_where_it_goes_on_on_the_same_machine) {
  static_cast<void>(end_of(wrong(InjectedFault::lasting)));
  const End end = end_of(again(InjectedFault::lasting));
  EXPECT_EQ(end.known, Refused::Known::not_yet);
  EXPECT_THAT(
      end.sentence,
      HasSubstr("was refused on here, injected by {guard.inject_every}, and is the same there again"));
  EXPECT_EQ(end.remembered, 0);
  EXPECT_TRUE(fs::exists(beside()));
}

TEST_F(RefusedRun, blames_the_machine_that_gave_what_another_does_not) {
  static_cast<void>(end_of(wrong(InjectedFault::lasting)));
  const End end = end_of(again(InjectedFault::lasting), "elsewhere");
  EXPECT_EQ(end.known, Refused::Known::machine_erred);
  EXPECT_THAT(end.sentence, HasSubstr("a lasting fault of that machine; go on without it"));
  EXPECT_EQ(train(again(InjectedFault::lasting), {.machine = "elsewhere"}).losses.size(), 4U)
      << "whoever starts then goes on";
}

TEST_F(RefusedRun, blames_no_machine_for_what_another_gives_too) {
  static_cast<void>(end_of(wrong(InjectedFault::everywhere)));
  const End end = end_of(again(InjectedFault::everywhere), "elsewhere");
  EXPECT_EQ(end.known, Refused::Known::numbers_are_so);
  EXPECT_THAT(end.sentence, HasSubstr("comes out the same on another machine: no machine erred"));
}

TEST_F(RefusedRun, goes_on_over_a_suspicion_where_judging_is_switched_off) {
  static_cast<void>(end_of(wrong(InjectedFault::lasting)));
  TrainConfig c = again(InjectedFault::lasting);
  c.guard.faults = FaultCheck::off;
  EXPECT_EQ(train(c).losses.size(), 4U);
}

TEST_F(RefusedRun, is_refused_by_all_ranks_alike) {
  const End end = end_of(two_ranks(wrong(InjectedFault::lasting)));
  EXPECT_EQ(end.known, Refused::Known::not_yet);
  EXPECT_THAT(read_suspicion(beside().parent_path())->machines, ElementsAre("here", "here"));
  EXPECT_EQ(end_of(two_ranks(again(InjectedFault::lasting)), "elsewhere").known,
            Refused::Known::machine_erred);
}

TEST_F(RefusedRun, a_step_that_computes_otherwise_on_the_same_machine_had_a_passing_fault) {
  static_cast<void>(end_of(wrong(InjectedFault::lasting)));
  Suspicion suspicion = *read_suspicion(beside().parent_path());
  suspicion.made_up = false;
  suspicion.numbers[0] += 1e-9;
  write_suspicion(beside().parent_path(), suspicion, disk());
  const End end = end_of(again(InjectedFault::lasting));
  EXPECT_EQ(end.known, Refused::Known::machine_erred);
  EXPECT_THAT(end.sentence, HasSubstr("a passing fault of that machine"));
  EXPECT_FALSE(fs::exists(beside()));
}

TEST_F(RefusedRun, a_loss_that_jumps_is_computed_twice_before_it_counts) {
  TrainConfig c = saving_often(folder_.path());
  c.checkpoint.save.clear();
  c.length.iterations = 103;
  c.guard.faults = FaultCheck::judge;
  c.guard.spiky_loss = true;
  const auto shake = [](std::int64_t step, Replica& replica) {
    if (step != 102) return;
    // A part's memory may hold several parameters.
    replica.weights().each_master([](const Held& held) {
      for (const Piece& piece : held.pieces)
        ops::scale_in_place(held.memory.slice(0, piece.at, piece.where.local.elements()), 20);
    });
    replica.weights().publish();
  };
  const Told told = train(c, {.before_step = shake});
  EXPECT_THAT(told.said,
              HasSubstr("is far above the first ones, and came out as before when the step was done again"));
  EXPECT_EQ(told.losses.size(), 103U);
}

TEST(Suspicion, is_read_as_it_was_written_whatever_its_numbers) {
  const Suspicion was{.step = 7,
                      .numbers = {std::nan(""), -HUGE_VAL, 0.1},
                      .machines = {"a", "b"},
                      .rank = 1,
                      .where = "in the gradient of x",
                      .made_up = true,
                      .machine_erred = true};
  const Suspicion is = suspicion_from_json(to_json(was), "x");
  EXPECT_EQ(to_json(is), to_json(was));
  EXPECT_TRUE(alike(is.numbers, was.numbers));
}

TEST(Suspicion, tells_a_bit_and_not_one_nan_from_another) {
  EXPECT_TRUE(alike({1, std::nan("1")}, {1, -HUGE_VAL}));
  EXPECT_FALSE(alike({1, 2}, {1, std::nextafter(2.0, 3.0)}));
  EXPECT_FALSE(alike({1, 2}, {1, HUGE_VAL}));
  EXPECT_FALSE(alike({1, 2}, {1}));
}

TEST(Suspicion, knows_the_machine_of_its_rank_wherever_that_computes_now) {
  const Suspicion of_b{.machines = {"a", "b"}, .rank = 1, .where = {}};
  EXPECT_TRUE(same_machine(of_b, {"b", "c"}));
  EXPECT_FALSE(same_machine(of_b, {"a", "c"}));
  const Suspicion of_all{.machines = {"a", "b"}, .where = {}};
  EXPECT_TRUE(same_machine(of_all, {"a", "c"}));
  EXPECT_FALSE(same_machine(of_all, {"c", "d"}));
}

TEST(Suspicion, refuses_what_no_run_wrote) {
  const auto said = [](std::string_view json) {
    try {
      static_cast<void>(suspicion_from_json(json, "x"));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(said("[]"), "x: not what a run of weft remembers of a step");
  EXPECT_EQ(said(R"({"format": "weft suspicion", "version": 2})"),
            "x: of another version, this weft reads version 1");
  EXPECT_THAT(said(R"({"format": "weft suspicion", "version": 1})"), HasSubstr("key 'step' not found"));
  EXPECT_EQ(said(R"({"format": "weft suspicion", "version": 1, "step": 1, "numbers": ["x"]})"),
            "x: 'x' is no number's bits");
}
