// A run that starts from a Hugging Face directory: the same first loss under every layout and from the
// converted checkpoint, and settings that must be the directory's.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/refused.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "tests/train/tiny_run.h"
#include "weft/base/fields.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/save.h"
#include "weft/exchange/hub_weights.h"
#include "weft/exchange/hub_write.h"
#include "weft/train/describe.h"
#include "weft/train/resume.h"
#include "weft/train/resume_theirs.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

std::filesystem::path hub(const std::string& name) {
  return std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden/exchange" / name;
}

/// Two steps from `load`, its model taken from the directory.
TrainConfig run_from(const std::filesystem::path& directory, const std::filesystem::path& load) {
  TrainConfig config = tiny_run();
  config.eval.interval = 0;
  config.length.iterations = 2;
  config.rate.warmup_iterations = 0;
  config.model = {};
  config.model.sequence = 8;
  config.model.vocabulary_unit = 2;
  Fields fields(config);
  from_json(fields, settings_of_theirs(directory, true), Origin::checkpoint);
  config.checkpoint.load = load.string();
  config.checkpoint.finetune = true;
  return config;
}

class ResumeHubExperts : public ::testing::TestWithParam<const char*> {};

}  // namespace

TEST(ResumeHub, gives_the_same_losses_under_every_layout_and_from_the_converted_checkpoint) {
  const TemporaryDirectory folder;
  const auto directory = hub("llama3");
  const exchange::HubConfig found = exchange::read_hub_config(directory);
  const exchange::HubWeights weights(directory, found);
  SoloCommunicator solo;
  checkpoint::save(checkpoint::step_directory(folder.path(), 0),
                   exchange::stream(weights, [](const auto&) { return Dtype::f32; }).tensors,
                   to_json(RunFacts{.configuration = run_from(directory, directory)}), solo);
  const Told whole = train(completed(run_from(directory, directory)));
  EXPECT_THAT(whole.said, HasSubstr("weights from " + directory.string() + "; the run starts at step 0"));
  EXPECT_EQ(train(completed(run_from(directory, folder.path()))).losses, whole.losses);
  TrainConfig cut = run_from(directory, directory);
  cut.parallel.tp = cut.parallel.pp = cut.run.ranks = 2;
  cut.run.ranks = 4;
  const Told other = train(completed(cut));
  ASSERT_EQ(other.losses.size(), whole.losses.size());
  for (std::size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(other.losses[i], whole.losses[i], 1e-5);
  TrainConfig fresh = run_from(directory, "");
  fresh.checkpoint = {};
  EXPECT_GT(std::abs(train(completed(fresh)).losses[0] - whole.losses[0]), 1e-2);
}

// A rate of zero: what is saved is what was read, by whichever rank held it.
TEST_P(ResumeHubExperts, come_whole_from_the_directory_to_every_rank_and_into_a_checkpoint) {
  const auto directory = hub(GetParam());
  const exchange::HubWeights weights(directory, exchange::read_hub_config(directory));
  const auto run = [&](const ParallelConfig& parallel, const std::filesystem::path& into) {
    TrainConfig config = saving(run_from(directory, directory), into);
    config.checkpoint.interval = 2;
    config.rate.peak = 0;
    config.model.experts.router.bias_rate = 0;
    config.parallel = parallel;
    config.run.ranks = parallel.tp * parallel.pp * parallel.dp;
    return train(completed(config)).losses;
  };
  const int etp = std::string(GetParam()) == "gpt_oss" ? 1 : 2;  // experts with biases are whole
  const TemporaryDirectory one;
  const std::vector<double> whole = run({.dp = 1}, one.path());
  for (const ParallelConfig& parallel :
       {ParallelConfig{.dp = 2, .ep = 2},
        {.tp = 2, .dp = 1, .etp = etp},
        {.tp = 2, .pp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1}}) {
    const TemporaryDirectory folder;
    const std::vector<double> losses = run(parallel, folder.path());
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(losses.at(i), whole[i], 1e-5);
    exchange::StepWeights step(checkpoint::step_directory(folder.path(), 2));
    for (const exchange::Recipe& recipe : weights.all()) {
      std::vector<float> there(std::size_t(recipe.shape.elements()));
      weights.read(recipe, 0, there);
      EXPECT_EQ(step.read(recipe), there) << recipe.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ResumeHubExperts,
                         ::testing::Values("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss",
                                           "qwen3_next", "qwen3_5_moe", "glm4_moe", "deepseek_v3"),
                         [](const auto& test) { return std::string(test.param); });

TEST(ResumeHub, a_run_of_another_model_is_refused) {
  TrainConfig config = run_from(hub("qwen3"), hub("qwen3"));
  config.model.qk_norm = false;
  EXPECT_EQ(
      refused([&] { train(completed(config)); }),
      hub("qwen3").string() +
          ": its config.json says qk_norm true, and false is asked for; {checkpoint.use_args} takes the "
          "model from there");
}

TEST(ResumeHub, the_settings_are_those_of_the_directory_and_leave_the_sequence_to_the_run) {
  CheckpointConfig asked;
  asked.load = hub("mistral").string();
  TrainConfig config;
  config.model.sequence = 8;
  Fields fields(config);
  from_json(fields, settings_of_checkpoint(asked), Origin::checkpoint);
  EXPECT_EQ(config.model.window, 5);
  EXPECT_EQ(config.model.channels, 8);
  EXPECT_EQ(config.model.sequence, 8);
  EXPECT_EQ(fields.at("model.hidden").origin(), Origin::checkpoint);
  EXPECT_EQ(fields.at("model.precision").origin(), Origin::built_in);
  EXPECT_EQ(config.data.tokenizer.type, "");
}

TEST(ResumeHub, knows_berts_words_and_whether_they_have_capitals) {
  const TemporaryDirectory folder;
  std::ofstream(folder / "vocab.txt") << "[PAD]\n";
  EXPECT_EQ(tokenizer_in(folder.path()).type, "BertWordPieceLowerCase");
  EXPECT_EQ(tokenizer_in(folder.path()).vocab_file, (folder / "vocab.txt").string());
  std::ofstream(folder / "tokenizer_config.json") << R"({"do_lower_case": false})";
  EXPECT_EQ(tokenizer_in(folder.path()).type, "BertWordPieceCase");
}
