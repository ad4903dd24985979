// Whole runs on samples by difficulty: no layout and no resume sees another order, and nothing else orders
// them.
#include "weft/data/difficulty.h"

#include "tests/support/temporary.h"
#include "tests/train/completing.h"
#include "tests/train/run_cut.h"
#include "tests/train/tiny_run.h"
#include "weft/data/number_rows.h"

using namespace weft;
using namespace weft::testing;
using ::testing::HasSubstr;

namespace {

/// Samples 10 to 49 have difficulty 1, 50 to 89 have 2, 90 to 129 have 3, which steps 1, 3 and 5 admit.
class Index {
 public:
  Index() {
    data::RowsToWrite samples{.numbers = {}, .lengths = {40, 40, 40}};
    for (std::int64_t number = 10; number < 130; ++number) samples.numbers.push_back(number);
    const data::RowsToWrite values{.numbers = {1, 2, 3}, .lengths = {1, 1, 1}};
    data::write_number_rows(folder_ / "samples", samples, data::NumberType::u8);
    data::write_number_rows(folder_ / "values", values, data::NumberType::u8);
  }
  TrainConfig run() const {
    TrainConfig c = tiny_run();
    c.data.difficulty.metrics = {text("hard:samples=", (folder_ / "samples").string(),
                                      ",values=", (folder_ / "values").string(),
                                      ",curve=fixed_discrete,least=1,most=3,levels=1/2/3,until=2/4")};
    return c;
  }

 private:
  support::TemporaryDirectory folder_;
};

Change with(std::vector<std::string> metrics, const Change& more = {}) {
  return [=](TrainConfig& c) {
    c.data.difficulty.metrics = metrics;
    if (more) more(c);
  };
}

constexpr const char* all = "all:clusters=single_cluster,curve=fixed_linear,least=1,most=2,steps=2";

}  // namespace

TEST(DifficultyRun, reads_easy_samples_first) {
  const Index index;
  TrainConfig c = index.run();
  c.rate.warmup_iterations = 0;
  for (const auto& [steps, most] :
       {std::pair(1, 50), {3, 90}, {5, 130}}) {  // and one more step is read ahead
    c.length.iterations = steps;
    c.eval.interval = 0;
    const Told told = train(completed(c), {.ledger = true});
    EXPECT_GE(*told.samples.begin(), 10);
    EXPECT_GE(*told.samples.rbegin(), most - 41);
    EXPECT_LT(*told.samples.rbegin(), most);
  }
}

TEST(DifficultyRun, is_the_same_under_every_layout_to_the_bit) {
  const Index index;
  const Told one = train(cut_as({.name = "one", .exact = true}, index.run()));
  ASSERT_EQ(one.losses.size(), 6U);
  for (const RunCut& cut : {RunCut{.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2, .exact = true},
                            RunCut{.name = "dp4_zero3", .dp = 4, .micro = 1, .zero = 3, .exact = true},
                            RunCut{.name = "pp2_cp2", .pp = 2, .micro = 2, .cp = 2, .exact = true}})
    expect_same_bits(train(cut_as(cut, index.run())), one, cut.name);
  TrainConfig usual = index.run();
  usual.data.difficulty = {};
  EXPECT_NE(train(cut_as({.name = "usual", .exact = true}, usual)).losses, one.losses);
}

TEST(DifficultyRun, draws_one_order_for_every_seed) {
  const Index index;
  TrainConfig c = index.run();
  const Told one = train(completed(c));
  EXPECT_EQ(train(completed(c)).losses, one.losses);
  c.data.difficulty.seed = 7;
  EXPECT_NE(train(completed(c)).losses, one.losses);
}

TEST(DifficultyRun, goes_on_from_a_checkpoint_to_the_bit) {
  const Index index;
  TrainConfig c = index.run();
  c.curriculum = {
      .rule = {.curve = data::LengthCurve::fixed_linear, .least = 4, .most = 8, .steps = 4, .multiple = 4}};
  expect_it_goes_on_to_the_bit(c);
}

// Nothing is learned, so that what is left of a run is its evaluations.
TEST(DifficultyRun, evaluates_on_all_samples) {
  const Index index;
  TrainConfig c = index.run();
  c.rate.peak = 0;
  TrainConfig usual = c;
  usual.data.difficulty = {};
  EXPECT_EQ(train(completed(c)).validations, train(completed(usual)).validations);
}

TEST(DifficultyRun, refuses_another_order_and_batches_that_change) {
  EXPECT_NO_THROW((void)completed(with({all})));
  refused(with({"m:by=weight"}),
          "{data.difficulty.metrics}: metric m: by: 'weight' is not one of value or percentile");
  refused(with({all, all}), "{data.difficulty.metrics} names all twice");
  refused(with({all}, [](TrainConfig& c) { c.data.order = SampleOrder::cyclic; }),
          "{data.difficulty.metrics} is an order of samples, and {data.order=cyclic} another one: leave one "
          "of them out");
  refused(with({all}, [](TrainConfig& c) { c.data.exact_epochs = 2; }),
          "{data.difficulty.metrics}: an index is of one epoch, and {data.exact_epochs} is 2: leave it out");
  EXPECT_NO_THROW((void)completed(with({all}, [](TrainConfig& c) { c.data.exact_epochs = 1; })));
  refused(with({all},
               [](TrainConfig& c) {
                 c.batch.global = 8, c.batch.rampup = {4, 2, 100};
               }),
          "{data.difficulty.metrics}: all steps draw one number of samples, and {batch.rampup} and "
          "{batch.schedule} change "
          "it: leave them out");
}

TEST(DifficultyRun, refuses_an_index_that_is_not_there) {
  EXPECT_THAT(
      [] {
        (void)train(
            completed(with({"m:samples=/nowhere/s,values=v,curve=fixed_linear,least=1,most=2,steps=2"})));
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("/nowhere/s.idx")));
}
