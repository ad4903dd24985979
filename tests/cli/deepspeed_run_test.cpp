// Runs of DeepSpeed's that go on in weft: converted with all that they go on with, their next steps have the
// losses that DeepSpeed itself went on to, as near as two programs come in bf16.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/going_on.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/train/save_facts.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;
using ::testing::HasSubstr;
using Json = nlohmann::json;

namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) { return exchange_golden("deepspeed") / name; }

/// Four samples a step, as the runs read them from `first` on: each word is asked for the next, and the last
/// for none.
class TheirSamples final : public data::Dataset {
 public:
  explicit TheirSamples(std::int64_t first) : first_(first) {}
  std::int64_t size() const override { return tokens().shape[0] * tokens().shape[1] - first_; }
  void fill(std::int64_t i, data::Sample& into) const override {
    const std::int64_t length = tokens().shape[2];
    std::vector<std::int64_t> row(static_cast<std::size_t>(length));
    std::memcpy(row.data(),
                file_.bytes(tokens()).data() + (first_ + i) * length * std::int64_t(sizeof row[0]),
                row.size() * sizeof row[0]);
    into.clear();
    for (std::size_t at = 0; at < row.size(); ++at) {
      const bool last = at + 1 == row.size();
      into[data::Field::tokens].push_back(std::int32_t(row[at]));
      into[data::Field::labels].push_back(last ? 0 : std::int32_t(row[at + 1]));
      into[data::Field::loss_mask].push_back(last ? 0 : 1);
      into[data::Field::positions].push_back(std::int32_t(at));
    }
  }
  std::vector<data::Origin> origins(std::int64_t) const override { return {}; }

 private:
  const checkpoint::Entry& tokens() const { return file_.at("tokens"); }
  std::int64_t first_;
  checkpoint::TensorFile file_{golden("data.safetensors")};
};

/// Of a loss: both programs round what they multiply to 8 bits, and add it up in other orders.
constexpr double near_in_bf16 = 2.5e-5;

struct Case {
  const char* name;
  ParallelConfig layout;
};

TrainConfig rest_of(const ParallelConfig& layout, const fs::path& from) {
  TrainConfig c = rest_of_theirs(layout, from);
  c.model.precision = Precision::bf16;
  c.rate.style = RateStyle::constant;
  return weft::testing::completed(c);
}

weft::testing::Told go_on(const TrainConfig& config, std::int64_t first_sample = 0) {
  return train_on(config, std::make_shared<TheirSamples>(first_sample));
}

std::vector<double> losses_of(const std::string& name) {
  std::ifstream file(golden(name) / "run.json");
  return Json::parse(file)["three_more_uninterrupted"].get<std::vector<double>>();
}

class DeepSpeedRun : public ::testing::TestWithParam<Case> {};

}  // namespace

TEST_P(DeepSpeedRun, goes_on_to_the_losses_that_deepspeed_went_on_to) {
  const TemporaryDirectory folder;
  const fs::path run = folder / "run";
  const Told made = convert({golden(GetParam().name).string(), run.string()});
  ASSERT_EQ(made.status, 0) << made.err;
  const weft::testing::Told found = go_on(rest_of(GetParam().layout, run));
  const std::vector<double> expected = losses_of(GetParam().name);
  ASSERT_EQ(found.losses.size(), 3U) << found.said;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(found.losses[i] / expected[i], 1, near_in_bf16) << i;
    EXPECT_EQ(found.steps[i].learning_rate, 2e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, DeepSpeedRun,
    ::testing::Values(Case{"zero1_gpt2", {.dp = 1}}, Case{"zero1_gpt2", {.tp = 2, .dp = 2, .zero = 1}},
                      Case{"zero2_llama", {.dp = 1}}, Case{"zero2_llama", {.pp = 2, .dp = 2, .zero = 1}},
                      Case{"zero3_llama", {.dp = 1}}, Case{"zero3_llama", {.dp = 4, .zero = 3}}),
    [](const auto& one) { return "case_" + std::to_string(one.index); });

// The tolerance above sees what a run without its averages does.
TEST(DeepSpeedRun, goes_elsewhere_without_its_averages) {
  for (const char* name : {"zero1_gpt2", "zero2_llama"}) {
    const TemporaryDirectory folder;
    const fs::path run = folder / "run";
    ASSERT_EQ(convert({"--weights-only", golden(name).string(), run.string()}).status, 0);
    TrainConfig c = rest_of({.dp = 1}, run);
    c.checkpoint.finetune = true;
    c.length.iterations = 3;
    const weft::testing::Told found = go_on(c, 16);
    const std::vector<double> expected = losses_of(name);
    EXPECT_NEAR(found.losses.at(0) / expected[0], 1, near_in_bf16);
    EXPECT_GT(std::abs(found.losses.at(2) / expected[2] - 1), 2 * near_in_bf16) << name;
  }
}

TEST(DeepSpeedConversion, says_what_it_made_and_where_the_run_stood) {
  const TemporaryDirectory folder;
  const std::string run = (folder / "run").string();
  const Told made = convert({"--from", "deepspeed", golden("zero3_llama").string(), run});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr("global_step4: the model after 4 steps\n"));
  EXPECT_THAT(made.out, HasSubstr("step_00000004: 45 tensors"));
  EXPECT_THAT(made.out, HasSubstr("the largest difference of a logit is 0,"));
  const RunFacts facts =
      facts_from_json(checkpoint::OpenStep(checkpoint::step_directory(run, 4)).facts(), run);
  EXPECT_EQ(facts.run.consumed_samples, 16);
  EXPECT_EQ(facts.run.updates, 4);
  EXPECT_FALSE(facts.run.schedules);
  EXPECT_FALSE(facts.run.seed);
}

TEST(DeepSpeedConversion, to_hugging_face_is_direct) {
  const TemporaryDirectory folder;
  const std::string out = (folder / "out").string();
  const Told made = convert({"--to", "hf", golden("zero1_gpt2").string(), out});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("the largest difference of a logit is 0,"));
  EXPECT_EQ(find_model(out).theirs->hub->type, "gpt2");
  const Told refused = convert({"--to", "deepspeed", out, (folder / "again").string()});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(
      refused.err,
      HasSubstr("checkpoint convert: weft cannot write deepspeed yet: --to hf, weft, megatron or gguf"));
}

TEST(DeepSpeedConversion, takes_a_config_from_elsewhere) {
  const TemporaryDirectory folder;
  fs::copy(golden("zero2_llama") / "global_step4", folder / "step");
  const std::string from = (folder / "step").string(), config = golden("zero2_llama").string();
  EXPECT_EQ(convert({"--config", config, from, (folder / "run").string()}).status, 0);
  const std::string run = (folder / "run").string();
  const Told refused = convert({"--config", config, run, (folder / "out").string()});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("checkpoint convert: --config is of DeepSpeed's checkpoints, and " +
                                     run + " is weft's"));
}

// As transformers' Trainer leaves them: both programs' files in one directory.
TEST(DeepSpeedConversion, may_be_told_to_take_hugging_faces_files) {
  const TemporaryDirectory folder;
  const std::string both = (folder / "both").string();
  ASSERT_EQ(convert({"--to", "hf", "--dtype", "bf16", golden("zero2_llama").string(), both}).status, 0);
  fs::copy(golden("zero2_llama") / "global_step4", fs::path(both) / "global_step4");
  fs::copy_file(golden("zero2_llama") / "latest", fs::path(both) / "latest");
  EXPECT_THAT(convert({both, (folder / "one").string()}).out, HasSubstr("step_00000004: 45 tensors"));
  EXPECT_THAT(convert({"--from", "hf", both, (folder / "other").string()}).out,
              HasSubstr("step_00000000: 15 tensors"));
  EXPECT_EQ(convert({"--from", "megatron", both, (folder / "third").string()}).status, 2);
}

TEST(DeepSpeedRunAsItIs, gives_its_weights_to_whoever_asks_for_no_more) {
  TrainConfig c = rest_of({.dp = 1}, golden("zero2_llama"));
  const std::string here = golden("zero2_llama").string();
  try {
    (void)go_on(c);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(
        std::string(e.what()),
        "{checkpoint.load} " + here + ": is a checkpoint of DeepSpeed's: weft checkpoint convert " + here +
            " NEW makes one that a run goes on from; add {checkpoint.finetune} to begin at step 0 with its "
            "weights");
  }
  c.checkpoint.finetune = true;
  c.length.iterations = 1;
  EXPECT_NEAR(go_on(c, 16).losses.at(0) / losses_of("zero2_llama")[0], 1, near_in_bf16);
}
