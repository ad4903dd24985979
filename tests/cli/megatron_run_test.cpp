// Runs of Megatron's that go on in weft: converted with all that they go on with, their next steps have the
// losses and norms that Megatron itself went on to.
#include <gmock/gmock.h>

#include <algorithm>
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

fs::path golden(const std::string& name) { return exchange_golden("megatron") / name; }

/// Four samples a step, as the runs read them.
class TheirSamples final : public data::Dataset {
 public:
  explicit TheirSamples(const fs::path& file) : file_(file) {}
  std::int64_t size() const override { return rows().elements() / rows()[rows().rank() - 1]; }
  void fill(std::int64_t i, data::Sample& into) const override {
    into.clear();
    for (std::size_t f = 0; f < data::num_fields; ++f)
      if (const auto field = data::Field(f); has(field)) into[field] = row(field, i);
    if (into.has(data::Field::positions) || into.has(data::Field::encoder_mask)) return;
    for (std::size_t at = 0; at < into[data::Field::tokens].size(); ++at)
      into[data::Field::positions].push_back(std::int32_t(at));
  }
  std::vector<data::Origin> origins(std::int64_t) const override { return {}; }

 private:
  bool has(data::Field field) const {
    return std::ranges::find(file_.header().entries, data::name(field), &checkpoint::Entry::name) !=
           file_.header().entries.end();
  }
  const Shape& rows() const { return file_.at("tokens").shape; }
  std::vector<std::int32_t> row(data::Field field, std::int64_t i) const {
    const checkpoint::Entry& entry = file_.at(std::string(data::name(field)));
    const auto length = std::size_t(entry.shape[entry.shape.rank() - 1]);
    const auto bytes = file_.bytes(entry).subspan(std::size_t(i) * length * sizeof(float));
    std::vector<std::int32_t> out(length);
    std::memcpy(out.data(), bytes.data(), length * sizeof(float));
    if (entry.dtype != Dtype::f32) return out;
    std::vector<float> reals(length);
    std::memcpy(reals.data(), bytes.data(), length * sizeof(float));
    return {reals.begin(), reals.end()};
  }
  checkpoint::TensorFile file_;
};

/// Those of the run's own, or those that most of them share.
fs::path samples_of(const std::string& name) {
  const fs::path own = golden(name) / "data.safetensors";
  return fs::exists(own) ? own : golden("data.safetensors");
}

struct Case {
  const char* name;
  ParallelConfig layout;
};

TrainConfig rest_of(const Case& given, const fs::path& from) {
  TrainConfig c = rest_of_theirs(given.layout, from);
  c.rate.floor = 2e-4;
  c.rate.style = RateStyle::cosine;
  c.rate.warmup_iterations = 2;
  c.rate.decay_iterations = 10;
  c.run.seed = 77123;
  return weft::testing::completed(c);
}

weft::testing::Told go_on(const TrainConfig& config, const std::string& name = "gpt2_tp2") {
  return train_on(config, std::make_shared<TheirSamples>(samples_of(name)));
}

/// What Megatron tells of a step: a BERT's two losses as one.
double loss_of(const report::StepRecord& step) {
  double sum = step.losses.front().second;
  for (const auto& [name, loss] : step.losses)
    if (name == "sop loss") sum += loss;
  return sum;
}

/// The three steps that Megatron itself went on to.
std::vector<Json> steps_of(const std::string& name) {
  std::ifstream file(golden(name) / "run.json");
  return Json::parse(file)["three_more_steps_uninterrupted"].get<std::vector<Json>>();
}

class MegatronRun : public ::testing::TestWithParam<Case> {};

}  // namespace

TEST_P(MegatronRun, goes_on_to_the_losses_that_megatron_went_on_to) {
  const TemporaryDirectory folder;
  const fs::path run = folder / "run";
  const Told made = convert({golden(GetParam().name).string(), run.string()});
  ASSERT_EQ(made.status, 0) << made.err;
  const weft::testing::Told found = go_on(rest_of(GetParam(), run), GetParam().name);
  const std::vector<Json> expected = steps_of(GetParam().name);
  ASSERT_EQ(found.losses.size(), 3U) << found.said;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(loss_of(found.steps[i]) / expected[i]["loss_reported"].get<double>(), 1, 2e-6) << i;
    EXPECT_NEAR(found.norms[i] / expected[i]["grad_norm"].get<double>(), 1, 1e-5) << i;
    if (i == 2) continue;
    // A line tells the rate of the step that follows.
    EXPECT_NEAR(found.steps[i].learning_rate.value() / expected[i + 1]["lr"].get<double>(), 1, 1e-9) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, MegatronRun,
    ::testing::Values(Case{"gpt2_tp2", {.dp = 1}}, Case{"gpt2_tp2", {.tp = 2, .dp = 2, .zero = 1}},
                      Case{"llama_tp2_pp2_dp2.fully_reshardable", {.dp = 1}},
                      Case{"llama_tp2_pp2_dp2.fully_reshardable", {.pp = 2, .dp = 2, .zero = 3}},
                      Case{"moe_ep2", {.dp = 1}}, Case{"moe_ep2", {.dp = 2, .ep = 2}},
                      Case{"llama_tp2_pp2_dp2.dp_reshardable", {.tp = 2, .dp = 2, .zero = 1}},
                      Case{"llama_tp2_pp2_dp2.dp_zero_gather_scatter", {.dp = 1}},
                      Case{"llama_tp2_pp2_distopt_legacy", {.pp = 2, .dp = 1}},
                      Case{"gpt2_tp2_pp2_legacy", {.tp = 2, .dp = 1}}, Case{"moe_ep2_distopt", {.dp = 1}},
                      Case{"moe_ep2_distopt", {.dp = 4, .ep = 4, .zero = 1}},
                      Case{"moe_ep2_legacy", {.dp = 2, .ep = 2}}, Case{"t5_distopt", {.dp = 1}},
                      Case{"t5_distopt", {.tp = 2, .dp = 2, .zero = 1}}, Case{"bert_distopt", {.dp = 1}},
                      Case{"bert_distopt", {.pp = 2, .dp = 1}}, Case{"latent_distopt", {.dp = 1}},
                      Case{"latent_distopt", {.tp = 2, .dp = 2, .zero = 3}},
                      Case{"further_distopt", {.dp = 1}}, Case{"further_distopt", {.pp = 2, .dp = 2}}),
    [](const auto& one) { return "case_" + std::to_string(one.index); });

// Trained in bf16: sums of few bits, in another order.
TEST(MegatronRunInBf16, goes_on_near_the_losses_that_megatron_went_on_to) {
  const TemporaryDirectory folder;
  const fs::path run = folder / "run";
  ASSERT_EQ(convert({golden("llama_dp2_bf16").string(), run.string()}).status, 0);
  TrainConfig c = rest_of({"llama_dp2_bf16", {.dp = 2, .zero = 1}}, run);
  c.model.precision = Precision::bf16;
  const weft::testing::Told found = go_on(c);
  const std::vector<Json> expected = steps_of("llama_dp2_bf16");
  ASSERT_EQ(found.losses.size(), 3U) << found.said;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(found.losses[i] / expected[i]["loss_reported"].get<double>(), 1, 2e-3) << i;
    EXPECT_NEAR(found.norms[i] / expected[i]["grad_norm"].get<double>(), 1, 2e-2) << i;
  }
}

TEST(MegatronConversion, says_what_it_made_and_where_the_run_stood) {
  const TemporaryDirectory folder;
  const std::string run = (folder / "run").string();
  const Told made = convert({golden("moe_ep2").string(), run});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr("iter_0000004: the model after 4 steps\n"));
  EXPECT_THAT(made.out, HasSubstr("step_00000004"));
  EXPECT_THAT(made.out, HasSubstr("the largest difference of a logit is 0"));
  const RunFacts facts =
      facts_from_json(checkpoint::OpenStep(checkpoint::step_directory(run, 4)).facts(), run);
  EXPECT_EQ(facts.run.consumed_samples, 16);
  EXPECT_EQ(facts.run.updates, 4);
  EXPECT_FALSE(facts.run.schedules);
  EXPECT_EQ(facts.configuration.run.seed, 77123);
}

TEST(MegatronConversion, takes_weights_alone_where_it_does_not_know_whose_moments_are) {
  const TemporaryDirectory folder;
  const fs::path copy = folder / "copy", run = folder / "run";
  fs::copy(golden("llama_tp2_pp2_distopt_legacy"), copy, fs::copy_options::recursive);
  const fs::path lost = copy / "iter_0000004/mp_rank_01_001/distrib_optim.pt";
  fs::remove(lost);
  const Told made = convert({copy.string(), run.string()});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr(lost.string() + ": is not there, expected it beside each rank's file: its "
                                                  "weights alone are converted\n"));
  EXPECT_TRUE(fs::exists(checkpoint::step_directory(run, 0)));
}

TEST(MegatronConversion, may_leave_the_run_behind) {
  const TemporaryDirectory folder;
  const std::string run = (folder / "run").string(), bf16 = (folder / "half").string();
  EXPECT_EQ(convert({"--weights-only", golden("gpt2_tp2").string(), run}).status, 0);
  EXPECT_TRUE(fs::exists(checkpoint::step_directory(run, 0)));
  const Told refused = convert({"--dtype", "bf16", golden("gpt2_tp2").string(), bf16});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(
      refused.err,
      HasSubstr(
          "checkpoint convert: --dtype: a run goes on with weights in f32; add --weights-only for bf16"));
  EXPECT_EQ(convert({"--dtype", "bf16", "--weights-only", golden("gpt2_tp2").string(), bf16}).status, 0);
}

TEST(MegatronConversion, to_hugging_face_is_direct) {
  for (const char* name : {"llama_tp2_pp2_dp2.fully_reshardable", "bert_distopt", "latent_distopt"}) {
    const TemporaryDirectory folder;
    const std::string out = (folder / "out").string();
    const Told made = convert({"--to", "hf", golden(name).string(), out});
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("the largest difference of a logit is 0"));
    EXPECT_TRUE(fs::exists(fs::path(out) / "model.safetensors"));
  }
  const TemporaryDirectory folder;
  const std::string out = golden("gpt2_tp2").string();
  EXPECT_EQ(convert({"--to", "megatron", out, (folder / "again").string()}).status, 2);
}

TEST(MegatronConversion, has_no_schedules_to_go_on_by) {
  const TemporaryDirectory folder;
  const fs::path run = folder / "run";
  ASSERT_EQ(convert({golden("gpt2_tp2").string(), run.string()}).status, 0);
  TrainConfig c = rest_of({"gpt2_tp2", {.dp = 1}}, run);
  c.rate.resume = SchedulerSource::checkpoint;
  try {
    (void)go_on(c);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("{rate.resume=checkpoint}: its schedules are not written down: give them, as the "
                          "program did that wrote it"));
  }
}

TEST(MegatronRunAsItIs, gives_its_weights_to_whoever_asks_for_no_more) {
  TrainConfig c = rest_of({"gpt2_tp2", {.dp = 1}}, golden("gpt2_tp2"));
  const std::string here = golden("gpt2_tp2").string();
  try {
    (void)go_on(c);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(
        std::string(e.what()),
        "{checkpoint.load} " + here + ": is a checkpoint of Megatron's: weft checkpoint convert " + here +
            " NEW makes one that a run goes on from; add {checkpoint.finetune} to begin at step 0 with its "
            "weights");
  }
  c.checkpoint.finetune = true;
  c.length.iterations = 1;
  EXPECT_EQ(go_on(c).losses.size(), 1U);
}
