// --verify-resume: a run that goes on does the step after the save again, and says what came out otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "tests/train/run_cut.h"
#include "tests/train/tiny_run.h"
#include "weft/checkpoint/save.h"
#include "weft/train/replay.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

namespace {

namespace fs = std::filesystem;

/// Six steps, saved after every second, that leave after the fourth.
TrainConfig verifying(const fs::path& folder) {
  TrainConfig config = saving_often(folder);
  config.checkpoint.verify = true;
  config.exit.interval = 4;
  return config;
}

/// Goes on from a step without saving.
TrainConfig from(TrainConfig config, const fs::path& step) {
  config.checkpoint.load = step.string();
  config.checkpoint.save.clear();
  return config;
}

/// A step whose numbers were changed, every hash right, with the record of the step that it came from.
void save_changed(const fs::path& from, const fs::path& to, const std::string& tensor,
                  const std::function<void(std::span<float>)>& change) {
  const auto device = open_device("cpu", {.threads = 1});
  SoloCommunicator world;
  const checkpoint::OpenStep step(from);
  std::vector<checkpoint::Named> all;
  for (const auto& [name, stored] : step.index().tensors)
    all.push_back(checkpoint::whole(name, empty(*device, stored.global, stored.dtype)));
  checkpoint::load(from, all, world);
  const auto one = std::ranges::find(all, tensor, &checkpoint::Named::name);
  ASSERT_NE(one, all.end());
  change(one->tensor.as<float>());
  checkpoint::save(to, all, step.facts(), world);
  write_replay(to, read_replay(from), disk());
}

void a_hair(std::span<float> numbers) { numbers[3] += 1e-7F; }
void nothing(std::span<float> numbers) { std::ranges::fill(numbers, 0.F); }

/// What four steps saved, and a step of it to spoil.
class Verify : public ::testing::Test {
 protected:
  Verify() { train(verifying(folder_.path())); }
  fs::path step() const { return folder_ / "step_00000004"; }
  fs::path other() const { return folder_ / "other"; }
  TrainConfig again() const { return from(verifying(folder_.path()), step()); }
  std::string refused_with(const std::string& tensor,
                           const std::function<void(std::span<float>)>& change) const {
    save_changed(step(), other(), tensor, change);
    return refused([&] { train(from(again(), other())); });
  }
  TemporaryDirectory folder_;
};

constexpr const char* of_all =
    " of 84 weights and moments differ, the first of them ";  // 28 weights, two moments each

}  // namespace

TEST_F(Verify, does_the_step_after_the_save_again_and_finds_every_bit_equal) {
  EXPECT_THAT(
      train(again()).said,
      ContainsRegex("verified: step 5 gives its loss [0-9.]+, its gradient norm and all 84 weights and "
                    "moments again, every bit equal"));
  EXPECT_THAT(train(from(again(), folder_ / "step_00000002")).said,
              HasSubstr("verified: step 3 gives its loss "))
      << "recorded while the run went on";
}

TEST_F(Verify, finds_a_moment_that_changed_by_a_hair_though_every_hash_is_right) {
  EXPECT_EQ(refused_with("layers.0.mlp.up.weight.m", a_hair),
            "{checkpoint.verify}: " + other().string() + ": step 5 does not come out as it did: 2" + of_all +
                "layers.0.mlp.up.weight; nothing was saved since it was loaded");
}

TEST_F(Verify, finds_a_weight_that_changed_by_a_hair) {
  const std::string said =
      refused_with("layers.1.mlp.down.weight", [](std::span<float> numbers) { numbers[3] += 1e-3F; });
  EXPECT_THAT(said,
              ContainsRegex("its loss is [0-9.]+, and was [0-9.]+; its gradient norm is [0-9.]+, and was "
                            "[0-9.]+; [0-9]+ of 84 weights and moments differ, the first of them "));
}

TEST_F(Verify, finds_moments_that_are_gone_under_another_layout_too) {
  for (const char* tensor : {"layers.0.mlp.up.weight.m", "layers.0.mlp.up.weight.v"}) {
    save_changed(step(), folder_ / tensor, tensor, nothing);
    TrainConfig config = from(again(), folder_ / tensor);
    config.parallel.tp = config.run.ranks = 2;
    EXPECT_THAT(refused([&] { train(completed(config)); }),
                ContainsRegex(std::string(": step 5 does not come out as it did: [12]") + of_all +
                              "layers.0.mlp.up.weight"));
  }
}

TEST_F(Verify, compares_the_last_batch_where_the_step_was_not_recorded_and_says_so) {
  fs::remove(step() / "replay.json");
  const std::string said = train(again()).said;
  EXPECT_THAT(said, ContainsRegex("verified: the last batch has loss [0-9.]+ again, every bit equal"));
  EXPECT_THAT(
      said, HasSubstr("{checkpoint.verify}: step 5 was not compared, moments were not looked at: " +
                      step().string() + ": holds no record of the next step, which the run did not finish"));
}

TEST_F(Verify, does_not_trust_a_record_that_is_damaged_or_of_another_checkpoint) {
  const std::string good = read_file(step() / "replay.json");
  std::string bad = good;
  bad[bad.find("\"loss\": ") + 8] ^= 1;
  write_atomically(step() / "replay.json", std::string_view(bad));
  EXPECT_THAT(train(again()).said, HasSubstr("replay.json: damaged, its hash is not the one it holds"));
  write_atomically(folder_ / "step_00000002/replay.json", std::string_view(good));
  EXPECT_THAT(train(from(again(), folder_ / "step_00000002")).said,
              HasSubstr("replay.json: is of a checkpoint that was replaced"));
}

TEST_F(Verify, does_not_compare_what_was_asked_to_differ_and_says_so) {
  const auto said = [&](const std::function<void(TrainConfig&)>& change) {
    TrainConfig config = again();
    change(config);
    return train(completed(config)).said;
  };
  const std::string start = "step 5 was not compared, moments were not looked at: ";
  EXPECT_THAT(said([](TrainConfig& c) { c.optimizer.beta2 = 0.95; }),
              HasSubstr(start + "optimizer.beta2 is 0.999 there and 0.95 here"));
  EXPECT_THAT(said([](TrainConfig& c) {
                c.rate.peak = 1e-3;
                c.rate.resume = SchedulerSource::given;
              }),
              ContainsRegex(start + "its learning rate is [0-9.e-]+ there and [0-9.e-]+ here"));
  EXPECT_THAT(said([](TrainConfig& c) { c.checkpoint.load_optimizer = false; }),
              HasSubstr(start + "optimizer states were not loaded"));
}

// A micro batch's loss is a mean over its own counting tokens.
TEST(VerifyRecord, is_of_other_micro_batches_where_tokens_are_masked) {
  const TemporaryDirectory folder;
  TrainConfig config = verifying(folder.path());
  config.data.mask_eod_loss = true;
  train(config);
  config = from(config, folder / "step_00000004");
  EXPECT_THAT(train(config).said, HasSubstr("again, every bit equal"));
  config.batch.micro = 4;
  EXPECT_THAT(train(config).said,
              HasSubstr("step 5 was not compared, moments were not looked at: micro batches "
                        "hold other samples, and each weighs its own tokens"));
}

// Until the freeze nothing is sent in one bit; what is left out then is of ranks.
TEST(VerifyRecord, of_one_bit_messages_is_compared_until_they_are_sent) {
  const auto said = [](std::int64_t freeze) {
    const TemporaryDirectory folder;
    TrainConfig config = verifying(folder.path());
    config.optimizer.kind = OptimizerKind::onebitadam;
    config.optimizer.onebit.freeze = freeze;
    train(cut_as({.name = "dp2", .dp = 2, .micro = 2}, config));
    const RunCut other{.name = "dp4", .dp = 4, .micro = 2};
    return train(from(cut_as(other, config), folder / "step_00000004")).said;
  };
  EXPECT_THAT(said(6), HasSubstr("verified: step 5 gives its loss "));
  EXPECT_THAT(said(5), HasSubstr("step 5 was not compared, moments were not looked at: errors of one-bit "
                                 "messages are those of other ranks, and start at zero"));
}

TEST_F(Verify, says_when_there_is_nothing_to_compare_with) {
  const TemporaryDirectory plain;
  TrainConfig config = verifying(plain.path());
  config.checkpoint.verify = false;
  train(config);
  config.checkpoint.verify = true;
  const std::string step = (plain / "step_00000004").string();
  EXPECT_EQ(refused([&] { train(from(config, step)); }),
            "{checkpoint.verify}: " + step +
                " says nothing to compare with: {checkpoint.verify} was not given when it was saved");
}

TEST_F(Verify, of_a_finished_run_is_its_last_batch) {
  TrainConfig config = going_on(verifying(folder_.path()));
  config.exit.interval = 0;
  train(config);
  EXPECT_THAT(train(config).said,
              HasSubstr("step 7 was not compared, moments were not looked at: no step follows"));
}

namespace {

/// A disk that is full for records alone.
class NoRecords final : public FileSystem {
 public:
  int sync(int) const override { return 0; }
  int open(const char* path, int flags, unsigned mode) const override {
    if (std::string_view(path).find("replay") == std::string_view::npos)
      return FileSystem::open(path, flags, mode);
    errno = ENOSPC;
    return -1;
  }
};

class VerifyUnder : public ::testing::TestWithParam<std::pair<RunCut, RunCut>> {};

}  // namespace

TEST(VerifyRecord, that_cannot_be_written_costs_a_warning) {
  const TemporaryDirectory folder;
  const NoRecords files;
  const Told told = train(verifying(folder.path()), {.files = &files});
  EXPECT_EQ(told.ending, Ending::at_interval);
  EXPECT_THAT(told.said,
              HasSubstr("warning: step 3 could not be recorded for {checkpoint.verify}: cannot create "));
  EXPECT_THAT(told.said, HasSubstr("step 5 could not be recorded"));
}

TEST_P(VerifyUnder, another_layout_compares_to_rounding_and_exact_mode_to_the_bit) {
  const auto& [before, after] = GetParam();
  const TemporaryDirectory folder;
  train(cut_as(before, verifying(folder.path())));
  EXPECT_THAT(train(from(cut_as(after, verifying(folder.path())), folder / "step_00000004")).said,
              ContainsRegex(std::string("verified: step 5 gives its loss .* again, ") +
                            (before.exact ? "every bit equal" : "equal to rounding under another layout")));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, VerifyUnder,
    ::testing::Values(std::pair(RunCut{.name = "tp2", .tp = 2}, RunCut{.name = "one"}),
                      std::pair(RunCut{.name = "one"}, RunCut{.name = "dp2", .dp = 2, .micro = 2}),
                      std::pair(RunCut{.name = "zero2", .dp = 2, .micro = 2, .zero = 1},
                                RunCut{.name = "pp2", .pp = 2, .micro = 2}),
                      std::pair(RunCut{.name = "half_pp2", .pp = 2, .micro = 2, .precision = Precision::bf16},
                                RunCut{.name = "half_tp2", .tp = 2, .precision = Precision::bf16}),
                      std::pair(RunCut{.name = "exact", .micro = 2, .exact = true},
                                RunCut{.name = "exact_tp2", .tp = 2, .micro = 2, .exact = true}),
                      std::pair(RunCut{.name = "exact_again_tp2", .tp = 2, .micro = 2, .exact = true},
                                RunCut{.name = "exact_pp2", .pp = 2, .micro = 4, .exact = true}),
                      std::pair(RunCut{.name = "exact_one", .exact = true},
                                RunCut{.name = "exact_cp2", .cp = 2, .exact = true}),
                      std::pair(RunCut{.name = "exact_dp2", .dp = 2, .micro = 2, .exact = true},
                                RunCut{
                                    .name = "exact_zero4", .dp = 4, .micro = 2, .zero = 1, .exact = true})),
    [](const auto& of) { return std::string(of.param.first.name) + "_to_" + of.param.second.name; });
