// Samples by difficulty: what DeepSpeed's own sampler draws, under every number of ranks and from every step.
#include "weft/data/difficulty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/golden.h"
#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/data/number_rows.h"
#include "weft/data/numpy_random.h"

using namespace weft;
using namespace weft::data;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

constexpr std::int64_t samples = 120, batch = 8;
const std::string folder = std::string(WEFT_SOURCE_DIR) + "/tests/golden/data/difficulty";

std::string placed(std::string word) {
  for (std::size_t at = 0; (at = word.find("FOLDER", at)) != std::string::npos;) word.replace(at, 6, folder);
  return word;
}

DifficultyRule rule_of(const Json& one) {
  DifficultyRule rule{.metrics = {}, .seed = one.at("seed")};
  for (const std::string word : one.at("metrics")) rule.metrics.push_back(read_metric(placed(word)));
  return rule;
}

std::vector<std::int64_t> step(const Sampler& sampler, std::int64_t number, const SampleTurn& turn) {
  return sampler.at((number - 1) * batch, turn);
}

constexpr SampleTurn alone{.global_batch = int(batch), .micro_batch = 2};
constexpr const char* cases[] = {"by_value",       "by_percentile", "merged", "in_stairs",
                                 "beside_lengths", "two",           "single"};

DifficultyRule by_value() { return rule_of(golden("difficulty/steps", "by_value")); }

}  // namespace

TEST(Difficulty, draws_what_deepspeeds_sampler_draws) {
  for (const char* name : cases) {
    const Json one = golden("difficulty/steps", name);
    const auto sampler = difficulty_sampler(rule_of(one), samples);
    // Where a cluster is smaller than what is taken of it, DeepSpeed's batch is short, and ours is not.
    const auto& steps = one.at("steps");
    const auto is_short = [](const Json& drawn) { return std::ssize(drawn) < batch; };
    const std::int64_t end = std::ranges::find_if(steps, is_short) - steps.begin();
    EXPECT_GE(end, 44) << name;
    for (std::int64_t i = 1; i <= end; ++i)
      EXPECT_EQ(step(*sampler, i, alone), steps[std::size_t(i - 1)].get<std::vector<std::int64_t>>())
          << name << " " << i;
  }
}

TEST(Difficulty, gives_ranks_the_parts_of_one_batch) {
  const auto sampler = difficulty_sampler(by_value(), samples);
  for (const std::int64_t number : {1, 20, 45}) {
    const auto whole = step(*sampler, number, alone);
    std::vector<std::int64_t> megatron(std::size_t(batch), -1), contiguous;
    for (int rank = 0; rank < 2; ++rank) {
      SampleTurn turn{.global_batch = int(batch), .micro_batch = 2, .rank = rank, .ranks = 2};
      const auto mine = step(*sampler, number, turn);
      for (std::size_t i = 0; i < 4; ++i) megatron[i / 2 * 4 + std::size_t(rank) * 2 + i % 2] = mine[i];
      turn.owners = Owners::contiguous;
      for (const std::int64_t one : step(*sampler, number, turn)) contiguous.push_back(one);
    }
    EXPECT_EQ(megatron, whole);
    EXPECT_EQ(contiguous, whole);
  }
}

TEST(Difficulty, depends_on_the_number_of_the_step_alone) {
  const auto forward = difficulty_sampler(by_value(), samples),
             jumping = difficulty_sampler(by_value(), samples);
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t i = 1; i <= 50; ++i) all.push_back(step(*forward, i, alone));
  for (const std::int64_t i : {50, 49, 48, 3, 1, 40, 37, 36, 2, 50})
    EXPECT_EQ(step(*jumping, i, alone), all[std::size_t(i - 1)]) << i;
}

TEST(Difficulty, shows_easy_samples_first_and_all_at_last) {
  const std::vector<std::int64_t> hard = golden("difficulty/steps", "generator").at("values");
  const auto sampler = difficulty_sampler(by_value(), samples);
  const auto hardest = [&](std::int64_t number) {
    std::int64_t most = 0;
    for (const std::int64_t one : step(*sampler, number, alone))
      most = std::max(most, hard[std::size_t(one)]);
    return most;
  };
  EXPECT_LE(hardest(1), 6);
  std::int64_t most = 0;
  for (std::int64_t i = 41; i <= 400; ++i) most = std::max(most, hardest(i));
  EXPECT_EQ(most, *std::ranges::max_element(hard));
}

TEST(Difficulty, makes_a_batch_of_fewer_samples_than_it_has) {
  const TestFolder here;
  write_number_rows(here / "s", {.numbers = {2, 0, 1}, .lengths = {3}}, NumberType::u8);
  write_number_rows(here / "v", {.numbers = {1}, .lengths = {1}}, NumberType::u8);
  const auto metric = read_metric(text("m:samples=", here / "s", ",values=", here / "v",
                                       ",curve=fixed_linear,least=1,most=2,steps=9,multiple=1"));
  const auto first = difficulty_sampler({.metrics = {metric}}, 3)->at(0, alone);
  EXPECT_EQ(first.size(), 8U);
  for (const std::int64_t one : {0, 1, 2}) EXPECT_GE(std::ranges::count(first, one), 2);
}

TEST(Difficulty, refuses_an_index_of_other_data) {
  EXPECT_THAT(
      [] { (void)difficulty_sampler(by_value(), 119); },
      ThrowsMessage<Error>(text(folder,
                                "/rare/rare_index_to_sample: names sample 119, and an epoch of the "
                                "training set has 119: the index was made of other data, another length of "
                                "samples, split or seed")));
  DifficultyRule mixed = by_value();
  mixed.metrics[0].values = folder + "/long/long_index_to_metric";
  EXPECT_THAT([&] { (void)difficulty_sampler(mixed, samples); },
              ThrowsMessage<Error>(HasSubstr("long_index_to_metric: 120 values, and ")));
  mixed.metrics[0].values = mixed.metrics[0].samples;
  EXPECT_THAT([&] { (void)difficulty_sampler(mixed, samples); },
              ThrowsMessage<Error>(HasSubstr(" values, expected one")));
}

TEST(Difficulty, refuses_steps_that_have_no_samples_or_another_batch) {
  DifficultyRule hard = by_value();
  hard.metrics[0].rule.least = 0;
  hard.metrics[0].rule.steps = 1000000;
  EXPECT_THAT([&] { (void)difficulty_sampler(hard, samples)->at(0, alone); },
              ThrowsMessage<Error>(
                  "samples by difficulty: none is as easy as step 1 asks: raise the least difficulty of "
                  "the metrics"));
  EXPECT_THAT([] { (void)difficulty_sampler(by_value(), samples)->at(12, alone); },
              ThrowsMessage<Error>(
                  "samples by difficulty: 12 samples were read, no whole number of batches of 8: a run by "
                  "difficulty has one {batch.global} from its start"));
}

TEST(Difficulty, is_written_as_it_is_read) {
  for (const char* name : cases) {
    const Json metrics = golden("difficulty/steps", name).at("metrics");
    for (const std::string word : metrics) {
      const std::string again = write_metric(read_metric(word));
      EXPECT_EQ(write_metric(read_metric(again)), again);
      EXPECT_THAT(again, HasSubstr("curve="));
    }
  }
  const DifficultyMetric stairs =
      read_metric("m:clusters=single_cluster,curve=fixed_discrete,most=9,levels=1/5/9,until=3/7");
  EXPECT_THAT(stairs.rule.lengths, ElementsAre(1, 5, 9));
  EXPECT_EQ(write_metric(stairs),
            "m:clusters=single_cluster,curve=fixed_discrete,most=9,levels=1/5/9,until=3/7");
}

TEST(Difficulty, refuses_metrics_that_do_not_fit_together) {
  const auto refusal = [](const std::string& word) -> std::string {
    try {
      (void)read_metric(word);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const std::string line = ",curve=fixed_linear,least=1,most=9,steps=5";
  EXPECT_EQ(refusal("m:samples=s,values=v" + line), "");
  EXPECT_EQ(refusal(":samples=s"), "a metric has no name: NAME:key=value,…");
  EXPECT_EQ(refusal("m:samples"), "metric m: 'samples' is not key=value");
  EXPECT_EQ(refusal("m:sample=s"), "metric m: there is no key sample, did you mean samples");
  EXPECT_THAT(refusal("m:by=weight"), HasSubstr("metric m: by: "));
  EXPECT_EQ(refusal("m:values=v" + line),
            "metric m needs samples: the prefix of its index of samples by value");
  EXPECT_EQ(refusal("m:samples=s" + line), "metric m needs values: the prefix of its index of values");
  EXPECT_EQ(refusal("m:samples=s,values=v"),
            "metric m needs curve: fixed_linear, fixed_root or fixed_discrete");
  EXPECT_EQ(refusal("m:samples=s,values=v,curve=fixed_linear,least=9,most=1"),
            "metric m: least 9 and most 1 are to be at least 0 and in this order");
  EXPECT_EQ(refusal("m:samples=s,by=percentile,curve=fixed_linear"),
            "metric m: most is 0: of how many parts are its shares?");
  EXPECT_EQ(refusal("m:samples=s,values=v,curve=fixed_linear,most=9"),
            "metric m: steps is 0: after how many is it most?");
  EXPECT_EQ(refusal("m:samples=s,values=v,multiple=0" + line),
            "metric m: multiple 0 and root 1 are to be at least 1, and from 0.01 to 100");
  EXPECT_EQ(refusal("m:samples=s,values=v,curve=fixed_linear,most=900000,steps=900000,multiple=1"),
            "metric m: 900000 levels, more than 65536: take a larger multiple");
  EXPECT_EQ(refusal("m:samples=s,values=v,curve=fixed_discrete,most=9,levels=1/2"),
            "metric m: 2 levels and 0 steps in until: each level but the last has a last step");
  EXPECT_EQ(refusal("m:samples=s,values=v,curve=fixed_discrete,most=9,levels=1/2,until=0"),
            "metric m: steps in until begin at 1 and grow, found 0");
  EXPECT_EQ(refusal("m:samples=s,values=v,curve=fixed_discrete,most=9,levels=-1/2,until=1"),
            "metric m: a level is -1, below 0");
}

TEST(NumpyPcg64, shuffles_and_draws_as_numpys_generator) {
  const Json told = golden("difficulty/steps", "generator");
  NumpyPcg64 random(42);
  std::vector<std::int64_t> ten(10), twenty(20);
  for (std::size_t i = 0; i < 20; ++i) twenty[i] = std::int64_t(i);
  std::copy_n(twenty.begin(), 10, ten.begin());
  random.shuffle(std::span(ten));
  random.shuffle(std::span(twenty));
  EXPECT_EQ(ten, told.at("list").get<std::vector<std::int64_t>>());
  EXPECT_EQ(twenty, told.at("array").get<std::vector<std::int64_t>>());
  for (const double x : told.at("random")) EXPECT_EQ(random.uniform(), x);
}
