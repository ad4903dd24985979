// The loop of a run: what is told, when it evaluates and stops, and what a step that is not finite does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/train/heard.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/checkpoint/find.h"
#include "weft/data/token_writer.h"
#include "weft/report/jsonl.h"
#include "weft/report/tensorboard.h"
#include "weft/train/settings.h"

using namespace weft;
using namespace weft::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

namespace {

// Two samples a step of a model with one layer, on mock data.
TrainConfig tiny() {
  TrainConfig c;
  c.model.layers = 1;
  c.model.hidden = 16;
  c.model.heads = 2;
  c.model.sequence = 16;
  c.model.vocabulary = 31;
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.batch.micro = 1;
  c.batch.global = 2;
  c.length.iterations = 6;
  c.rate = {.peak = 1e-2, .style = RateStyle::constant};
  c.log.interval = 1;
  c.eval.iterations = 1;
  c.data.mock = true;
  c.data.index = IndexKind::keyed;  // a stored one takes a second to shuffle
  return c;
}

std::int64_t iteration(const report::StepRecord& step) { return step.iteration; }
std::int64_t batch(const report::StepRecord& step) { return step.global_batch; }
std::int64_t consumed(const report::StepRecord& step) { return step.consumed_samples; }
double rate(const report::StepRecord& step) { return step.learning_rate.value(); }
double scale(const report::StepRecord& step) { return step.loss_scale; }
std::int64_t left_out(const report::StepRecord& step) { return step.skipped + step.not_finite; }

std::string temporary(const std::string& name) {
  const auto path = std::filesystem::path(::testing::TempDir()) / ("loop_test_" + name);
  std::filesystem::remove_all(path);
  return path.string();
}

// Weights whose products are beyond the largest f16.
TrainConfig overflowing() {
  TrainConfig c = tiny();
  c.model.precision = Precision::f16;
  c.scaling.constant = 1;
  c.model.init.std = 1e3;
  return c;
}

// Twenty documents of 15 tokens; half of them give 9 samples of 16.
std::string documents(const std::string& name) {
  const std::string prefix = temporary(name);
  data::TokenWriter writer(prefix, {.type = data::TokenType::u16});
  for (int d = 0; d < 20; ++d) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 15; ++i) tokens.push_back((d * i) % 31);
    writer.add_document(tokens, std::vector<std::int32_t>{15});
  }
  writer.finish();
  return prefix;
}

TrainConfig validating(const std::vector<std::string>& prefixes) {
  TrainConfig c = tiny();
  c.data.mock = false;
  c.data.paths = prefixes;
  c.data.split = "50,50,0";
  c.eval.skip_train = true;
  c.eval.whole_set = true;
  return c;
}

/// Takes its time, in which each step that is told must not be among those that are saved.
class Slow final : public report::Sink {
 public:
  explicit Slow(std::string saved) : saved_(std::move(saved)) {}
  const char* name() const override { return "the slow one"; }
  void write(const report::StepRecord& step) override {
    const auto is_saved = [&] {
      return std::filesystem::exists(checkpoint::step_directory(saved_, step.iteration));
    };
    std::unique_lock lock(mutex_);
    EXPECT_FALSE(never_.wait_for(lock, std::chrono::milliseconds(50), is_saved)) << step.iteration;
  }
  void write(const report::Evaluation&) override {}

 private:
  std::string saved_;
  std::mutex mutex_;
  std::condition_variable never_;
};

}  // namespace

// A run that is killed as soon as it has saved leaves no gap in what is written about it.
TEST(Loop, has_told_of_every_step_before_it_is_saved) {
  for (const bool in_background : {false, true}) {
    TrainConfig c = tiny();
    c.checkpoint.save = temporary("told");
    c.checkpoint.interval = 2;
    c.checkpoint.in_background = in_background;
    More more;
    more.sinks.push_back(std::make_unique<Slow>(c.checkpoint.save));
    (void)run(c, std::move(more));
    EXPECT_TRUE(std::filesystem::exists(checkpoint::step_directory(c.checkpoint.save, 6)));
  }
}

TEST(Loop, trains_and_tells_every_step) {
  const Heard heard = run(tiny());
  EXPECT_THAT(heard.each(iteration), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(heard.each(consumed), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_NEAR(heard.losses().front(), std::log(31), 0.1);
  EXPECT_LT(heard.losses().back(), heard.losses().front() - 0.05);
  EXPECT_GT(heard.steps[0].grad_norm.value(), 0);
  EXPECT_EQ(heard.ending, Ending::finished);
}

TEST(Loop, the_same_run_gives_the_same_bits) { EXPECT_EQ(run(tiny()).losses(), run(tiny()).losses()); }

TEST(Loop, tells_the_first_step_and_the_mean_of_every_interval) {
  TrainConfig c = tiny();
  const std::vector<double> each = run(c).losses();
  c.log.interval = 3;
  const Heard heard = run(c);
  EXPECT_THAT(heard.each(iteration), ElementsAre(1, 3, 6));
  EXPECT_EQ(heard.losses()[0], each[0]);
  EXPECT_DOUBLE_EQ(heard.losses()[1], (each[0] + each[1] + each[2]) / 3);
  EXPECT_DOUBLE_EQ(heard.losses()[2], (each[3] + each[4] + each[5]) / 3);
}

TEST(Loop, evaluates_at_its_interval_and_at_the_end) {
  TrainConfig c = tiny();
  c.eval.interval = 2;
  const Heard heard = run(c);
  std::vector<std::string> places;
  for (const auto& evaluation : heard.evaluations) places.push_back(evaluation.of);
  EXPECT_THAT(places, ElementsAre("iteration 2", "iteration 4", "iteration 6",
                                  "iteration 6 on validation set", "iteration 6 on test set"));
  EXPECT_LT(heard.evaluations[3].losses[0].second, heard.evaluations[0].losses[0].second);
  EXPECT_EQ(heard.evaluations[0].consumed_samples, 4);
}

TEST(Loop, looking_at_the_validation_set_changes_no_step) {
  TrainConfig c = tiny();
  c.model.hidden_dropout = 0.1F;
  const std::vector<double> unseen = run(c).losses();
  c.eval.interval = 1;
  EXPECT_EQ(run(c).losses(), unseen);
}

TEST(Loop, every_evaluation_goes_on_where_the_last_one_stopped) {
  TrainConfig c = tiny();
  c.rate.peak = 0;  // the same weights, so that only the samples differ
  c.eval.interval = 3;
  const Heard heard = run(c);
  EXPECT_NE(heard.evaluations[0].losses[0].second, heard.evaluations[1].losses[0].second);
}

TEST(Loop, evaluates_without_training_where_told_to) {
  TrainConfig c = tiny();
  c.eval.skip_train = true;
  const Heard heard = run(c);
  EXPECT_TRUE(heard.steps.empty());
  ASSERT_EQ(heard.evaluations.size(), 2u);
  EXPECT_NEAR(heard.evaluations[0].losses[0].second, std::log(31), 0.1);
}

// Nine samples: whole batches of 1 and 3, and one of 2 and of 4 that is filled up with samples that do not
// count.
TEST(Loop, counts_every_sample_of_a_whole_validation_set_once) {
  TrainConfig c = validating({documents("whole")});
  std::vector<double> losses;
  for (const int together : {1, 2, 3, 4}) {
    c.eval.global = together;
    losses.push_back(run(c).evaluations.at(0).losses[0].second);
  }
  EXPECT_THAT(losses, ::testing::Each(losses[0]));
}

TEST(Loop, tells_a_loss_for_each_of_several_validation_sets) {
  TrainConfig c = validating({documents("first"), documents("second")});
  c.data.separate_validation = true;
  const Heard numbered = run(c);
  ASSERT_EQ(numbered.evaluations.size(), 2u);
  EXPECT_EQ(numbered.evaluations[0].set, "-0");
  EXPECT_EQ(numbered.evaluations[1].set, "-1");
  c.data.validation_names = {"web", "books"};
  EXPECT_EQ(run(c).evaluations.at(1).set, "-books");
}

TEST(Loop, leaves_out_iterations_but_not_their_samples) {
  TrainConfig c = tiny();
  c.guard.skip_iterations = {2, 3};
  c.rate.style = RateStyle::linear;
  c.rate.decay_iterations = 10;
  const Heard skipping = run(c);
  EXPECT_THAT(skipping.each(consumed), ElementsAre(2, 8, 10, 12));
  EXPECT_THAT(skipping.each(left_out), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(skipping.steps[3].skipped_samples, 4);
  c.guard.skip_iterations = {};
  const Heard whole = run(c);
  EXPECT_EQ(rate(skipping.steps[1]), rate(whole.steps[1]));  // as of the second step that was taken
  EXPECT_EQ(skipping.losses()[0], whole.losses()[0]);
  EXPECT_NE(skipping.losses()[1], whole.losses()[3]);
}

TEST(Loop, stops_at_a_loss_that_is_not_finite_and_says_where_it_began) {
  EXPECT_THAT([] { (void)run(overflowing()); },
              ThrowsMessage<Error>(::testing::MatchesRegex(
                  "step 1: the loss is not finite, first seen after .*, samples [0-9]+; the weights are as "
                  "they were before")));
}

TEST(Loop, skips_and_counts_steps_that_are_not_finite_where_told_to) {
  TrainConfig c = overflowing();
  c.guard.non_finite = NonFinite::skip;
  c.length.iterations = 2;
  const std::string path = temporary("events.json");
  const Log log(0, {.console = false, .json_path = path, .now = [] { return 0.0; }});
  const Heard heard = run(c, {.log = log});
  log.flush();
  EXPECT_THAT(heard.each([](const report::StepRecord& s) { return s.not_finite; }), ElementsAre(1, 1));
  EXPECT_FALSE(heard.steps[0].grad_norm.has_value());
  const std::string events = read_file(path);
  EXPECT_THAT(events, HasSubstr("step 1: the loss is not finite, first seen after "));
  EXPECT_THAT(events, HasSubstr("the weights are as they were before; the step is skipped"));
}

TEST(Loop, the_batch_grows_along_its_ramp) {
  TrainConfig c = tiny();
  c.batch.global = 6;
  c.batch.rampup = {2, 2, 12};
  const Heard heard = run(c);
  EXPECT_THAT(heard.each(consumed), ElementsAre(2, 4, 6, 10, 14, 20));
  EXPECT_THAT(heard.each(batch), ElementsAre(2, 2, 2, 4, 4, 6));
}

TEST(Loop, stops_after_its_exit_interval) {
  TrainConfig c = tiny();
  c.exit.interval = 4;
  const Heard heard = run(c);
  EXPECT_EQ(heard.ending, Ending::at_interval);
  EXPECT_THAT(heard.each(iteration), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(heard.evaluations.empty());
}

TEST(Loop, stops_after_the_step_in_which_it_is_asked_to) {
  const std::atomic<bool> asked = true;
  const Heard heard = run(tiny(), {.asked = &asked});
  EXPECT_EQ(heard.ending, Ending::asked);
  EXPECT_EQ(heard.steps.size(), 1u);
}

TEST(Loop, half_precision_finds_its_loss_scale_and_trains) {
  TrainConfig c = tiny();
  c.model.precision = Precision::f16;
  c.length.iterations = 40;
  c.scaling.hysteresis = 1;
  const Heard heard = run(c);
  EXPECT_EQ(scale(heard.steps[0]), 4294967296.0 / 2);  // as it is behind the step, which overflowed
  EXPECT_EQ(left_out(heard.steps[0]), 1);
  EXPECT_EQ(left_out(heard.steps.back()), 0);
  for (std::size_t i = 1; i < heard.steps.size(); ++i)
    EXPECT_EQ(scale(heard.steps[i]), scale(heard.steps[i - 1]) / (left_out(heard.steps[i]) > 0 ? 2 : 1));
  EXPECT_LT(heard.losses().back(), std::log(31) - 0.05);
}

TEST(Loop, half_precision_with_a_constant_scale_that_is_too_large_stops) {
  TrainConfig c = tiny();
  c.model.precision = Precision::f16;
  c.scaling.constant = 1e9;
  EXPECT_THAT([&] { (void)run(c); }, ThrowsMessage<Error>(HasSubstr("step 1: the gradient is not finite, ")));
}

TEST(Loop, files_for_programs_tell_every_step_whatever_the_interval_of_lines) {
  TrainConfig c = tiny();
  c.log.interval = 3;
  c.log.jsonl = "said by whoever opens the sink";
  const Heard heard = run(c);
  std::vector<std::int64_t> steps, lines;
  for (const report::StepRecord& step : heard.steps)
    (step.span == report::RecordScope::step ? steps : lines).push_back(step.iteration);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(lines, ElementsAre(1, 3, 6));
}

// Its loss is the step's own; times are means of the steps since its last line.
TEST(Loop, tells_of_deepspeeds_engine_at_steps_of_its_own) {
  TrainConfig c = tiny();
  const std::vector<double> losses = run(c).losses();
  c.log.interval = 3;
  c.log.engine_interval = 2;
  EXPECT_THAT(run(c).each(iteration), ElementsAre(1, 3, 6));
  c.log.lines = report::LineForm::deepspeed;
  std::vector<std::int64_t> engine, lines;
  for (const report::StepRecord& step : run(c).steps) {
    EXPECT_TRUE(step.engine_apart);
    if (step.span != report::RecordScope::engine) {
      lines.push_back(step.iteration);
      continue;
    }
    engine.push_back(step.iteration);
    EXPECT_EQ(step.losses.at(0).second, losses.at(std::size_t(step.iteration - 1)));
  }
  EXPECT_THAT(engine, ElementsAre(2, 4, 6));
  EXPECT_THAT(lines, ElementsAre(1, 3, 6));
}

TEST(Loop, tells_memory_at_its_interval) {
  TrainConfig c = tiny();
  c.log.memory_interval = 4;
  const std::string path = temporary("memory.json");
  const Log log(0, {.console = false, .json_path = path, .now = [] { return 0.0; }});
  run(c, {.log = log});
  log.flush();
  const std::string events = read_file(path);
  EXPECT_THAT(events, HasSubstr("memory after step 4: "));
  EXPECT_THAT(events, ::testing::Not(HasSubstr("memory after step 3: ")));
}

TEST(Loop, writes_a_line_of_json_a_step_and_events_for_tensorboard) {
  const std::string lines = temporary("steps.jsonl"), folder = temporary("events");
  TrainConfig c = tiny();
  c.eval.interval = 6;
  More more;
  more.sinks.push_back(report::jsonl_sink(lines));
  more.sinks.push_back(report::tensorboard_sink(
      {.directory = folder, .memory = true, .perplexity = true, .world_size = true}));
  const Heard heard = run(c, std::move(more));
  std::ifstream in(lines);
  std::vector<nlohmann::json> read;
  for (std::string line; std::getline(in, line);) read.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(read.size(), 9u);
  EXPECT_EQ(read[5]["lm_loss"], heard.losses()[5]);
  EXPECT_EQ(read[6]["evaluation"], "iteration 6");
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) events += read_file(entry.path());
  for (const char* tag :
       {"lm loss", "lm loss vs samples", "learning-rate", "batch-size", "loss-scale", "grad-norm",
        "world-size", "mem-allocated-bytes", "lm loss validation", "lm loss validation ppl"})
    EXPECT_THAT(events, HasSubstr(tag));
}

// The names of a step's parts, none of which is longer than the step.
std::set<std::string> timed_parts(int level) {
  TrainConfig c = tiny();
  c.log.interval = 6;
  c.log.timing_level = level;
  const Heard heard = run(c);
  std::set<std::string> names;
  for (const report::Timers& timers : heard.timers)
    for (const auto& [name, ms] : timers.milliseconds) {
      names.insert(name);
      EXPECT_LE(ms.at(0), heard.steps.back().milliseconds) << name;
    }
  return names;
}

TEST(Loop, tells_where_its_steps_spent_their_time_as_finely_as_asked) {
  const std::set<std::string> stages = {"forward-backward", "all-grads-sync", "optimizer-clip-main-grad",
                                        "optimizer-inner-step", "optimizer"};
  EXPECT_EQ(timed_parts(0), std::set<std::string>{});
  EXPECT_EQ(timed_parts(1), stages);
  EXPECT_THAT(timed_parts(2),
              ::testing::IsSupersetOf({"batch-generator", "forward-compute", "backward-compute"}));
}
