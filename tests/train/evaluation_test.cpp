// Evaluations that take long: what is said of them, and that a run which must stop does not wait for their
// end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

/// A run that is over after its first step, and whose evaluations are of three batches.
TrainConfig out_of_time() {
  TrainConfig c = tiny_run();
  c.eval.interval = 1;
  c.eval.iterations = 3;
  c.exit.minutes = 1e-9;
  return completed(c);
}

}  // namespace

TEST(Loop, stops_when_its_time_is_over) {
  TrainConfig c = tiny_run_without_evaluation();
  c.exit.minutes = 1e-9;
  const Told told = train(c);
  EXPECT_EQ(told.ending, Ending::out_of_time);
  EXPECT_EQ(told.losses.size(), 1U);
}

TEST(Evaluation, is_broken_off_where_the_run_must_stop) {
  const Told told = train(out_of_time());
  EXPECT_EQ(told.ending, Ending::out_of_time);
  EXPECT_EQ(told.losses.size(), 1U);
  EXPECT_TRUE(told.validations.empty());
  EXPECT_THAT(told.said, HasSubstr("warning: the evaluation is broken off, as the run is to stop\n"));
}

TEST(Evaluation, that_is_broken_off_changes_no_later_one) {
  const TemporaryDirectory folder;
  TrainConfig whole = out_of_time();
  whole.exit.minutes = 0;
  const Told unbroken = train(whole);
  EXPECT_THAT(unbroken.said, Not(HasSubstr("broken off")));
  train(saving(out_of_time(), folder.path()));
  const Told told = train(going_on(saving(whole, folder.path())));
  EXPECT_EQ(joined({unbroken.validations.front()}, told.validations), unbroken.validations);
}

TEST(Evaluation, of_a_whole_set_says_first_how_much_that_is) {
  TrainConfig c = out_of_time();
  c.eval.whole_set = true;
  const Told told = train(c);
  EXPECT_THAT(told.said, ::testing::ContainsRegex(
                             "\\{eval.whole_set\\}: [0-9]{7} batches of 8 samples, a third of 100,000 "
                             "made-up documents\n"));
  EXPECT_EQ(told.ending, Ending::out_of_time);
}

// Of other batches than the checkpoint's, so that its samples say nothing of steps here.
TEST(Evaluation, of_a_checkpoint_needs_no_length) {
  const TemporaryDirectory folder;
  train(saving_often(folder.path()));
  TrainConfig c = tiny_run();
  c.batch.global = 4;
  c.length = {};
  c.eval.skip_train = true;
  c.checkpoint.load = folder.path().string();
  const Told told = train(completed(c));
  EXPECT_EQ(told.ending, Ending::finished);
  EXPECT_TRUE(told.losses.empty());
  EXPECT_EQ(told.validations.size(), 2U);
}

namespace {

/// What a BERT tells of its validation set, whose means are of microbatches.
std::vector<double> validations_of_bert(int data_ranks) {
  TrainConfig c = tiny_run();
  c.model.kind = "bert";
  c.model.exact = true;
  c.model.sequence = c.model.max_positions = 32;
  c.model.vocabulary = 64;
  c.data.index = IndexKind::stored;
  c.eval.iterations = 2;
  c.parallel.dp = c.run.ranks = data_ranks;
  return train(completed(c)).validations;
}

}  // namespace

TEST(Evaluation, in_exact_mode_shows_no_layout) { EXPECT_EQ(validations_of_bert(2), validations_of_bert(1)); }
