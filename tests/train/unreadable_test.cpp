// Data that cannot be read somewhere in the middle: the run ends with what is wrong, and what was learned
// before is saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "tests/train/tiny_run.h"
#include "weft/base/error.h"
#include "weft/checkpoint/find.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

namespace {

constexpr std::int64_t broken_sample = 35;  // the fifth step's fourth

/// All but one sample of another.
class Broken final : public data::Dataset {
 public:
  explicit Broken(std::shared_ptr<const data::Dataset> of) : of_(std::move(of)) {}
  std::int64_t size() const override { return of_->size(); }
  void fill(std::int64_t i, data::Sample& into) const override {
    if (i == broken_sample) fail(Kind::data, "talks.jsonl:35: not JSON");
    of_->fill(i, into);
  }
  std::vector<data::Origin> origins(std::int64_t i) const override { return of_->origins(i); }

 private:
  std::shared_ptr<const data::Dataset> of_;
};

TrainConfig saving_at_the_end(const std::filesystem::path& folder) {
  TrainConfig c = saving(tiny_run_without_evaluation(), folder);
  c.checkpoint.interval = 100;
  return c;
}

/// What a run told that ends with the sample that a split of its data has broken.
Told broken_off(const TrainConfig& config, data::Split split = data::Split::train) {
  RunData data = open_run_data(config);
  auto& set = data.sets.of[std::size_t(split)].front();
  set = std::make_shared<Broken>(set);
  Told told;
  EXPECT_EQ(refused([&] { train_into(told, config, {.data = &data}); }), "talks.jsonl:35: not JSON");
  return told;
}

std::int64_t newest_step(const TrainConfig& config) {
  const auto found = checkpoint::find_latest(config.checkpoint.save).step;
  return found ? found->step : 0;
}

/// The losses of a run that was broken off before its fifth step and goes on with data that are whole.
std::vector<double> losses_in_two(TrainConfig config) {
  const Told first = broken_off(config);
  EXPECT_EQ(first.losses.size(), 4U);
  EXPECT_THAT(first.said,
              HasSubstr("the run stops before its end: what comes next of the data cannot be read, "
                        "see below\n"));
  EXPECT_EQ(newest_step(config), 4);
  return joined(first.losses, train(going_on(config)).losses);
}

}  // namespace

TEST(UnreadableData, end_a_run_with_what_was_learned_saved) {
  const TemporaryDirectory folder;
  EXPECT_THAT(losses_in_two(saving_at_the_end(folder.path())),
              ElementsAreArray(train(tiny_run_without_evaluation()).losses));
}

TEST(UnreadableData, are_known_to_all_ranks_where_one_reads_them) {
  const TemporaryDirectory folder;
  TrainConfig c = saving_at_the_end(folder.path());
  c.parallel.dp = c.parallel.pp = 2;
  c.run.ranks = 4;
  c.checkpoint.save.clear();
  const std::vector<double> whole = train(c).losses;
  c.checkpoint.save = folder.path().string();
  EXPECT_THAT(losses_in_two(c), ElementsAreArray(whole));
}

TEST(UnreadableData, are_found_where_batches_grow) {
  const TemporaryDirectory folder;
  TrainConfig c = saving_at_the_end(folder.path());
  c.length.iterations = 12;
  c.batch.rampup = {4, 4, 32};
  EXPECT_EQ(broken_off(completed(c)).losses.size(), 8U);
  EXPECT_EQ(newest_step(c), 8);
}

TEST(UnreadableData, of_an_evaluation_lose_nothing_either) {
  const TemporaryDirectory folder;
  TrainConfig c = saving_at_the_end(folder.path());
  c.eval.interval = 2;
  c.eval.iterations = 3;
  const Told told = broken_off(completed(c), data::Split::valid);
  EXPECT_EQ(told.losses.size(), 4U);
  EXPECT_EQ(told.validations.size(), 1U);
  EXPECT_EQ(newest_step(c), 4);
}

TEST(UnreadableData, need_no_place_to_save) {
  EXPECT_EQ(broken_off(tiny_run_without_evaluation()).losses.size(), 4U);
}
