// Saving while a run goes on: disks that fail, runs that are killed, what is kept, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/checkpoint/faulty.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "tests/train/tiny_run.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/lock.h"
#include "weft/checkpoint/save.h"
#include "weft/train/resume.h"
#include "weft/train/resume_settings.h"
#include "weft/train/save_facts.h"

using namespace weft;
using namespace weft::testing;
using checkpoint::testing::Faulty;
using checkpoint::testing::Manner;
using support::TemporaryDirectory;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;

namespace {

std::vector<std::int64_t> steps_in(const std::filesystem::path& root) {
  std::vector<std::int64_t> out;
  for (const auto& step : checkpoint::step_directories(root)) out.push_back(step.step);
  return out;
}

RunFacts facts_in(const std::filesystem::path& step) {
  return facts_from_json(checkpoint::OpenStep(step).facts(), step.string());
}

/// A file system on which all writes fail after some calls, with an error of the disk's.
class Broken : public ::testing::TestWithParam<std::pair<const char*, int>> {};

}  // namespace

TEST_P(Broken, does_not_stop_training_and_is_told_in_the_end) {
  const TemporaryDirectory folder;
  const Faulty files(5, Manner::for_good, GetParam().second);
  const Told unbroken = train(saving_often((folder / "whole")));
  const Told told = train(saving_often(folder / "broken"), {.files = &files});
  EXPECT_EQ(told.losses, unbroken.losses);
  EXPECT_EQ(told.ending, Ending::unsaved);
  EXPECT_THAT(told.said, HasSubstr("warning: the checkpoint of step 2 could not be saved: cannot "));
  EXPECT_THAT(told.said, HasSubstr("; training goes on, nothing is saved yet"));
}

INSTANTIATE_TEST_SUITE_P(Disks, Broken,
                         ::testing::Values(std::pair("full", ENOSPC), std::pair("failing", EIO),
                                           std::pair("read_only", EROFS), std::pair("over_quota", EDQUOT),
                                           std::pair("path_too_long", ENAMETOOLONG)),
                         [](const auto& of) { return of.param.first; });

TEST(Save, that_fails_once_leaves_the_previous_step_and_the_run_whole) {
  const TemporaryDirectory folder;
  const int calls = calls_of(saving_often(folder.path()));
  const Faulty files(calls / 2, Manner::once);
  const Told told = train(saving_often(folder.path()), {.files = &files});
  EXPECT_EQ(told.ending, Ending::finished);
  EXPECT_THAT(told.said, HasSubstr("the checkpoint of step 4 could not be saved: "));
  EXPECT_THAT(told.said,
              HasSubstr("No space left on device; training goes on, step 2 is the newest that is saved"));
  EXPECT_TRUE(facts_in(folder / "step_00000006").run.optimizer);
}

TEST(Save, on_a_disk_that_is_full_names_the_step_that_the_run_goes_on_from) {
  const TemporaryDirectory folder;
  TrainConfig config = saving_often(folder.path());
  config.exit.interval = 4;
  train(config);
  const Faulty files(1, Manner::for_good);
  const Told told = train(going_on(saving_often(folder.path())), {.files = &files});
  EXPECT_EQ(told.ending, Ending::unsaved);
  EXPECT_THAT(told.said, HasSubstr("the checkpoint of step 6 could not be saved: "));
  EXPECT_THAT(told.said, HasSubstr("; training goes on, step 4 is the newest that is saved"));
}

TEST(Save, of_two_runs_in_one_directory_lets_the_second_not_begin) {
  const TemporaryDirectory folder;
  const Log log(0, {.console = false});
  auto other = std::make_unique<checkpoint::DirectoryLock>(folder.path(), checkpoint::this_run(), log);
  EXPECT_THAT(refused([&] { train(saving_often(folder.path())); }),
              AllOf(HasSubstr(folder.path().string() + ": another run saves there: process "),
                    EndsWith("; wait until it has ended, or save elsewhere")));
  EXPECT_TRUE(steps_in(folder.path()).empty());
  other.reset();
  EXPECT_EQ(train(saving_often(folder.path())).ending, Ending::finished);
  EXPECT_FALSE(std::filesystem::exists(folder / checkpoint::lock_name));
}

namespace {

/// A run whose first update leaves weights that are not finite, and which ends and saves then.
TrainConfig going_astray(const std::filesystem::path& folder) {
  TrainConfig config = saving_often(folder);
  config.exit.interval = 1;
  config.rate.peak = config.rate.start = INFINITY;
  config.rate.warmup_iterations = 0;
  return config;
}

}  // namespace

TEST(Save, never_writes_weights_that_are_not_finite) {
  for (const bool in_background : {false, true}) {
    const TemporaryDirectory folder;
    TrainConfig config = going_astray(folder.path());
    config.checkpoint.in_background = in_background;
    EXPECT_THAT(
        refused([&] { train(config); }),
        AllOf(HasSubstr("the checkpoint of step 1 is not saved: "),
              EndsWith(" holds numbers that are not finite, and such a model is not saved; nothing is "
                       "saved yet")));
    EXPECT_EQ(checkpoint::find_latest(folder.path()).step, std::nullopt);
  }
}

TEST(Save, says_of_weights_that_an_update_left_not_finite_that_no_step_mends_them) {
  const TemporaryDirectory folder;
  TrainConfig config = going_astray(folder.path());
  config.checkpoint.interval = 0;
  config.exit.interval = 0;
  for (const NonFinite policy : {NonFinite::stop, NonFinite::skip}) {
    config.guard.non_finite = policy;
    EXPECT_THAT(
        refused([&] { train(config); }),
        ContainsRegex("^step 2: [a-z0-9._]+ was not finite when the step began, so neither it nor a "
                      "later one can be applied; go on from a checkpoint, and look at \\{rate.peak\\}, "
                      "\\{optimizer.epsilon\\}, \\{optimizer.clip\\} and \\{model.init.std\\}$"));
  }
}

TEST(Loop, stops_at_weights_that_are_not_finite_from_the_start) {
  TrainConfig config = tiny_run_without_evaluation();
  config.model.init.std = 1e39;
  EXPECT_THAT(refused([&] { train(config); }),
              HasSubstr("step 1: embedding.words was not finite when the step began"));
}

TEST(Save, in_the_background_survives_a_disk_that_fails) {
  const TemporaryDirectory folder;
  TrainConfig config = saving_often(folder.path());
  config.checkpoint.in_background = true;
  const Faulty files(5, Manner::for_good);
  const Told told = train(config, {.files = &files});
  EXPECT_EQ(told.losses.size(), 6U);
  EXPECT_EQ(told.ending, Ending::unsaved);
}

TEST(Save, keeps_the_last_every_mth_and_the_best) {
  const TemporaryDirectory folder;
  TrainConfig config = saving_often(folder.path());
  config.checkpoint.interval = config.eval.interval = 1;
  config.checkpoint.retain_interval = 4;
  config.checkpoint.keep_last = 1;
  config.checkpoint.keep_best = 1;
  const Told told = train(config);
  const auto best = std::min_element(told.validations.begin(), told.validations.begin() + 6);
  std::set<std::int64_t> kept{4, 6, best - told.validations.begin() + 1};
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::int64_t>(kept.begin(), kept.end())));
  EXPECT_EQ(facts_in(folder / "step_00000006").run.validated_losses.size(), 6U);
}

TEST(Save, says_where_the_run_stood) {
  const TemporaryDirectory folder;
  TrainConfig config = saving_often(folder.path());
  config.eval.interval = 3;
  train(config);
  const RunFacts facts = facts_in(folder / "step_00000004");
  EXPECT_EQ(facts.run.step, 4);
  EXPECT_EQ(facts.run.consumed_samples, 32);
  EXPECT_EQ(facts.run.learned_samples, 32);
  EXPECT_EQ(facts.run.valid_samples, 8);
  EXPECT_EQ(facts.run.updates, 4);
  EXPECT_EQ(facts.run.seed, 1234);
  EXPECT_EQ(facts.configuration.model.hidden, 16);
  EXPECT_EQ(facts.schedules.rate.schedule.warmup, 16);
}

namespace {

/// A run of four steps in a folder, and what a second one says that is changed.
class Refusal {
 public:
  Refusal() {
    TrainConfig config = saving_often(folder_.path());
    config.exit.interval = 4;
    train(config);
  }
  std::string step() const { return (folder_ / "step_00000004").string(); }
  const std::filesystem::path& path() const { return folder_.path(); }
  TrainConfig again() const { return going_on(saving_often(folder_.path())); }
  std::string of(const std::function<void(TrainConfig&)>& change) const {
    TrainConfig config = again();
    change(config);
    return refused([&] { train(config); });
  }

 private:
  TemporaryDirectory folder_;
};

}  // namespace

TEST(Facts, name_the_family_of_a_model_that_is_no_gpt) {
  RunFacts facts;
  EXPECT_EQ(to_json(facts).find("\"family\""), std::string::npos);
  facts.configuration.model.kind = "mamba";
  EXPECT_EQ(facts_from_json(to_json(facts), "a file").configuration.model.kind, "mamba");
  EXPECT_EQ(facts_from_json(to_json(RunFacts{}), "a file").configuration.model.kind, "gpt");
}

TEST(Resume, refuses_another_family_by_name) {
  TrainConfig config;
  config.model.kind = "mamba";
  EXPECT_EQ(refused([&] { must_continue({}, config, "there"); }),
            "there: is of a model of the family gpt, and mamba is asked for");
}

TEST(Resume, refuses_another_model_by_name) {
  const Refusal run;
  EXPECT_EQ(run.of([](TrainConfig& c) { c.model.norm_epsilon = 1e-6; }),
            run.step() +
                ": is of another model: model.norm_epsilon is 1e-05 there and 1e-06 here; give the same "
                "flags, or {checkpoint.use_args} without them");
  EXPECT_THAT(run.of([](TrainConfig& c) { c.model.layers = 3; }),
              HasSubstr("model.layers is 2 there and 3 here"));
}

TEST(Resume, refuses_another_seed_unless_told) {
  const Refusal run;
  const auto other = [](TrainConfig& c) { c.run.seed = 5; };
  EXPECT_EQ(run.of(other),
            run.step() +
                ": its seed is 1234 and {run.seed} 5 is asked for: leave {run.seed} out, or add "
                "{checkpoint.load_random=false}");
  TrainConfig config = run.again();
  config.run.seed = 5;
  config.checkpoint.load_random = false;
  EXPECT_EQ(train(config).losses.size(), 2U);
}

TEST(Resume, refuses_to_cut_shuffled_epochs_another_way) {
  const Refusal run;
  EXPECT_EQ(run.of([](TrainConfig& c) {
    c.data.order = SampleOrder::cyclic;
    c.batch.micro = 4;
  }),
            run.step() +
                ": {data.order=cyclic} cuts every epoch by data-parallel ranks and micro batch, 1 and "
                "2 there, 1 and 4 here: samples would come twice; keep them, or use "
                "{data.order=single} from the start");
}

TEST(Resume, wants_to_know_whose_schedule_holds) {
  const Refusal run;
  const auto other = [](TrainConfig& c) { c.rate.peak = 1e-3; };
  EXPECT_EQ(run.of(other), run.step() +
                               ": its schedules differ: rate.peak is 0.005 there and 0.001 here, "
                               "ends_rate.peak is 0.005 there and 0.001 here; add "
                               "{rate.resume=given} for those of the command line, or "
                               "{rate.resume=checkpoint} for the checkpoint's");
  const Told unbroken = train(run.again());
  TrainConfig config = run.again();
  other(config);
  config.checkpoint.save.clear();
  config.rate.resume = SchedulerSource::checkpoint;
  config.checkpoint.step = 4;
  EXPECT_EQ(train(config).losses, unbroken.losses);
  config.rate.resume = SchedulerSource::given;
  EXPECT_NE(train(config).losses, unbroken.losses);
}

TEST(Resume, never_starts_anew_in_silence) {
  const TemporaryDirectory folder;
  TrainConfig config = going_on(saving_often(folder.path()));
  const std::string root = folder.path().string();
  EXPECT_EQ(
      refused([&] { train(config); }),
      "{checkpoint.load} " + root + ": no checkpoint can be loaded: " + root +
          ": holds no directory of a step; add {checkpoint.allow_fresh_start} to begin with new weights");
  config.checkpoint.allow_fresh_start = true;
  const Told told = train(config);
  EXPECT_EQ(told.losses.size(), 6U);
  EXPECT_THAT(told.said, HasSubstr("a fresh start: the run begins with new weights at step 0"));
}

TEST(Resume, does_not_start_over_a_step_that_was_complete) {
  const Refusal run;
  for (const std::int64_t step : {2, 4})
    std::ofstream(checkpoint::step_directory(run.path(), step) / "COMPLETE") << "torn";
  EXPECT_THAT(run.of([](TrainConfig& c) { c.checkpoint.allow_fresh_start = true; }),
              AllOf(HasSubstr(": step 2 was complete and is damaged, so {checkpoint.allow_fresh_start} does "
                              "not start over it"),
                    EndsWith("; repair it or move it away")));
  const Refusal pretrained;
  EXPECT_THAT(run.of([&](TrainConfig& c) { c.checkpoint.pretrained = pretrained.path().string(); }),
              HasSubstr("so {checkpoint.pretrained} does not start over it"));
}

TEST(Resume, passes_over_a_damaged_step_and_says_so) {
  const Refusal run;
  const Told unbroken = train(tiny_run_without_evaluation());
  std::ofstream(run.step() + "/COMPLETE") << "torn";
  const Told told = train(run.again());
  EXPECT_EQ(told.losses, std::vector<double>(unbroken.losses.begin() + 2, unbroken.losses.end()));
  EXPECT_THAT(told.said, HasSubstr("warning: step 4 is passed over: "));
}

TEST(Resume, loads_the_step_that_is_named) {
  const Refusal run;
  TrainConfig config = run.again();
  config.checkpoint.step = 2;
  EXPECT_EQ(refused([&] { train(config); }),
            "{checkpoint.save} " + run.path().string() +
                ": holds step 4, and this run starts from step 2: two runs would mix; save elsewhere");
  config.checkpoint.save.clear();
  EXPECT_EQ(train(config).losses.size(), 4U);
  config.checkpoint.step = 3;
  EXPECT_EQ(refused([&] { train(config); }), checkpoint::step_directory(run.path(), 3).string() +
                                                 ": no complete checkpoint, its mark COMPLETE is missing");
}

TEST(Save, refuses_to_mix_a_new_run_with_an_old_one) {
  const Refusal run;
  const std::string root = run.path().string();
  EXPECT_EQ(
      refused([&] { train(saving_often(run.path())); }),
      "{checkpoint.save} " + root +
          ": holds step 4, and this run starts from step 0: two runs would mix; add {checkpoint.load} " +
          root + " to go on from it, or save elsewhere");
}

TEST(Resume, takes_weights_alone_for_another_task) {
  const Refusal run;
  TrainConfig config = run.again();
  config.checkpoint.save.clear();
  config.checkpoint.finetune = true;
  config.run.seed = 5;
  const Told tuned = train(config);
  EXPECT_EQ(tuned.losses.size(), 6U);
  config.checkpoint.load.clear();
  config.checkpoint.finetune = false;
  config.checkpoint.pretrained = run.path().string();
  EXPECT_EQ(train(config).losses, tuned.losses);
}

TEST(Resume, without_optimizer_states_starts_moments_and_schedule_anew) {
  const TemporaryDirectory folder;
  TrainConfig config = saving_often(folder.path());
  config.checkpoint.save_optimizer = false;
  config.exit.interval = 4;
  train(config);
  for (const auto& [name, values] : tensors_of(folder / "step_00000004"))
    EXPECT_FALSE(name.ends_with(".m") || name.ends_with(".v")) << name;
  TrainConfig again = going_on(saving_often(folder.path()));
  EXPECT_EQ(
      refused([&] { train(again); }),
      (folder / "step_00000004").string() +
          ": holds no optimizer states; add {checkpoint.load_optimizer=false} or {checkpoint.finetune}");
  again.checkpoint.load_optimizer = false;
  EXPECT_EQ(train(again).losses.size(), 2U);
  const RunFacts facts = facts_in(folder / "step_00000006");
  EXPECT_EQ(facts.run.consumed_samples, 48);
  EXPECT_EQ(facts.run.learned_samples, 16);
  EXPECT_EQ(facts.run.updates, 2);
}

TEST(Settings, of_a_checkpoint_are_the_models_and_the_tokenizers) {
  const Refusal run;
  const std::string json = settings_of_checkpoint(run.again().checkpoint);
  EXPECT_THAT(json, AllOf(HasSubstr(R"("hidden":16)"), HasSubstr(R"("tokenizer":)")));
  CheckpointConfig bare = run.again().checkpoint;
  bare.use_tokenizer = false;
  EXPECT_THAT(settings_of_checkpoint(bare), Not(HasSubstr("tokenizer")));
  EXPECT_EQ(seed_of_checkpoint(bare), 1234);
  bare.load = "/nowhere";
  EXPECT_EQ(refused([&] { (void)settings_of_checkpoint(bare); }),
            "{checkpoint.use_args}: /nowhere holds no complete checkpoint to ask; add "
            "{checkpoint.allow_fresh_start} to begin with what flags say");
}

TEST(Facts, of_another_program_or_a_later_version_are_refused) {
  EXPECT_EQ(refused([] { (void)facts_from_json(R"({"a": 1})", "x"); }), "x: not the facts of a run of weft");
  EXPECT_EQ(refused([] { (void)facts_from_json(R"({"format": "weft run", "version": 2})", "x"); }),
            "x: version 2 of the facts of a run, this weft reads version 1");
  EXPECT_EQ(facts_from_json(R"({"format": "weft run", "version": 1, "run": {"step": 7},
                               "configuration": {"model": {"hidden": 5, "later": 1}}})",
                            "x")
                .configuration.model.hidden,
            5);
}
