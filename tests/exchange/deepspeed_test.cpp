// Checkpoints that DeepSpeed 0.19.8 wrote of models of transformers, and what it makes of them itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/exchange/deepspeed_files.h"
#include "tests/exchange/hub.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/comm/solo.h"
#include "weft/comm/threads.h"
#include "weft/exchange/deepspeed/checkpoint.h"
#include "weft/exchange/deepspeed/find.h"
#include "weft/exchange/their_model.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::EndsWith;

namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) { return hub_model("deepspeed") / name; }

std::vector<float> read_in(const TheirWeights& weights, const std::string& name) {
  const Recipe& recipe = weights.at(name);
  std::vector<float> out(static_cast<std::size_t>(recipe.shape.elements()));
  weights.read(recipe, 0, out);
  return out;
}

struct Probe {
  std::vector<std::int32_t> text;
  std::vector<float> logits;
};
/// The first of its texts.
Probe probe_of(const fs::path& directory) {
  const checkpoint::TensorFile file(directory / "probe.safetensors");
  const checkpoint::Entry &tokens = file.at("tokens"), &logits = file.at("logits_of_f32_masters");
  std::vector<std::int64_t> words(static_cast<std::size_t>(tokens.shape[1]));
  std::memcpy(words.data(), file.bytes(tokens).data(), words.size() * sizeof words[0]);
  Probe out{.text = {words.begin(), words.end()}, .logits = {}};
  out.logits.resize(static_cast<std::size_t>(logits.shape[1] * logits.shape[2]));
  std::memcpy(out.logits.data(), file.bytes(logits).data(), out.logits.size() * sizeof(float));
  return out;
}

class DeepSpeed : public ::testing::TestWithParam<const char*> {
 protected:
  fs::path directory_ = golden(GetParam());
};

/// The same step as DeepSpeed's ds_to_universal wrote it.
struct Universal {
  const char *root, *step;
};
class DeepSpeedUniversal : public ::testing::TestWithParam<Universal> {};

}  // namespace

// What zero_to_fp32 makes of it is a directory of Hugging Face's when a config.json lies beside.
TEST_P(DeepSpeed, weights_are_those_that_zero_to_fp32_makes) {
  const TemporaryDirectory folder;
  fs::copy_file(directory_ / "expected_tensors.safetensors", folder / "model.safetensors");
  fs::copy_file(directory_ / "config.json", folder / "config.json");
  const auto expected = read_theirs(folder.path()).open(), found = read_theirs(directory_).open();
  ASSERT_EQ(found->all().size(), expected->all().size());
  for (const Recipe& recipe : expected->all()) {
    EXPECT_EQ(found->dtype(found->at(recipe.name)), Dtype::f32);
    EXPECT_EQ(read_in(*found, recipe.name), read_in(*expected, recipe.name)) << recipe.name;
  }
}

TEST_P(DeepSpeed, logits_are_those_that_transformers_computes) {
  const TheirModel theirs = read_theirs(directory_);
  EXPECT_EQ(theirs.program, Program::deepspeed);
  const Probe probe = probe_of(directory_);
  run_as_threads(2, [&](Communicator& world) {
    ReadModel model(theirs.model, world);
    load_theirs(*theirs.open(), model.named(), world);
    EXPECT_LT(difference(model.logits(probe.text), probe.logits), 1e-5);
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, DeepSpeed, ::testing::Values("zero1_gpt2", "zero2_llama", "zero3_llama"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(DeepSpeedUniversal, holds_the_same_weights_and_averages) {
  const TheirModel ranks = read_theirs(golden(GetParam().root)),
                   universal = read_theirs(golden(GetParam().root) / GetParam().step);
  const auto one = ranks.open(), other = universal.open();
  for (const Recipe& recipe : one->all())
    EXPECT_EQ(read_in(*other, recipe.name), read_in(*one, recipe.name)) << recipe.name;
  const auto left = ranks.run->open_states(), right = universal.run->open_states();
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(left[i]->all().size(), one->all().size());
    for (const Recipe& recipe : left[i]->all())
      EXPECT_EQ(read_in(*right[i], recipe.name), read_in(*left[i], recipe.name)) << recipe.name;
  }
  EXPECT_EQ(universal.run->updates, 4);
}

INSTANTIATE_TEST_SUITE_P(Steps, DeepSpeedUniversal,
                         ::testing::Values(Universal{"zero1_gpt2", "global_step4_universal"},
                                           Universal{"zero3_llama", "global_step4_universal"}),
                         [](const auto& one) { return std::string(one.param.root); });

// The file's own averages, row 1 of what GPT-2 stores input first.
TEST(DeepSpeedAverages, lie_as_their_weights_do) {
  const TheirModel theirs = read_theirs(golden("zero1_gpt2"));
  const auto states = theirs.run->open_states();
  deepspeed::Checkpoint file(*deepspeed::find_step(golden("zero1_gpt2")));
  std::vector<float> stored(24 * 96);
  file.first_moments().read("transformer.h.1.mlp.c_fc.weight", {0, 1, std::ssize(stored)}, stored.data());
  const std::vector<float> ours = read_in(*states[0], "layers.1.mlp.up.weight.m");
  for (std::size_t in = 0; in < 24; ++in)
    for (std::size_t out = 0; out < 96; ++out) ASSERT_EQ(ours[out * 24 + in], stored[in * 96 + out]);
}

TEST(DeepSpeedRunFound, says_what_it_goes_on_with) {
  const TheirModel theirs = read_theirs(golden("zero1_gpt2"));
  ASSERT_TRUE(theirs.run);
  EXPECT_EQ(theirs.run->step, 4);
  EXPECT_EQ(theirs.run->updates, 4);
  EXPECT_EQ(theirs.run->consumed, 16);
  EXPECT_EQ(theirs.run->batch, 4);
  EXPECT_EQ(theirs.run->micro_batch, 2);
  EXPECT_EQ(theirs.run->beta2, 0.95);
  EXPECT_EQ(theirs.run->weight_decay, 0.1);
  EXPECT_EQ(theirs.run->clip, 1);
  EXPECT_FALSE(theirs.run->seed);
  EXPECT_THAT(theirs.notices,
              ElementsAre(EndsWith("global_step4: the model after 4 steps"),
                          EndsWith("global_step4: its learning rate stands at 0.002; schedules are not in "
                                   "it, so give them as before")));
}

namespace {

/// A copy of a golden run of one rank's files, of which some may go.
class Copied {
 public:
  explicit Copied(const char* name) { fs::copy(golden(name), here(), fs::copy_options::recursive); }
  fs::path here() const { return folder_ / "copy"; }

 private:
  TemporaryDirectory folder_;
};

/// What is told of a run whose optimizer's groups are these.
TheirModel of_groups(const fs::path& universal, const std::vector<Said>& groups) {
  std::vector<std::string> all;
  for (const Said& group : groups) all.push_back(dict(group));
  write_saved(universal / "zero" / "optimizer_state.pt", dict({{"param_groups", list(all)}}));
  return read_theirs(universal);
}

}  // namespace

TEST(DeepSpeedRunFound, is_none_where_there_is_no_optimizers_file) {
  const Copied copy("zero1_gpt2");
  for (const char* rank : {"0", "1"})
    fs::remove(copy.here() / "global_step4" /
               ("bf16_zero_pp_rank_" + std::string(rank) + "_mp_rank_00_optim_states.pt"));
  const TheirModel theirs = read_theirs(copy.here());
  EXPECT_FALSE(theirs.run);
  EXPECT_THAT(
      theirs.notices,
      ElementsAre(EndsWith("the model after 4 steps"),
                  EndsWith("global_step4: weights alone are read: it holds no *_optim_states.pt files")));
  const auto weights = theirs.open();
  EXPECT_EQ(weights->dtype(weights->all().front()), Dtype::bf16);
  const Probe probe = probe_of(golden("zero1_gpt2"));
  SoloCommunicator solo;
  ReadModel model(theirs.model, solo);
  load_theirs(*weights, model.named(), solo);
  EXPECT_LT(difference(model.logits(probe.text), probe.logits), 1e-2);
}

TEST(DeepSpeedRunFound, is_none_where_a_tensor_lacks_its_averages) {
  const Copied copy("zero3_llama");
  const fs::path universal = copy.here() / "global_step4_universal";
  for (const auto& tensor : fs::directory_iterator(universal / "zero"))
    if (tensor.is_directory()) fs::remove(tensor.path() / "exp_avg_sq.pt");
  const TheirModel theirs = read_theirs(universal);
  EXPECT_FALSE(theirs.run);
  EXPECT_THAT(theirs.notices.back(),
              EndsWith("global_step4_universal: weights alone are read: its optimizer has "
                       "no exp_avg and exp_avg_sq, so it was not Adam"));
}

TEST(DeepSpeedRunFound, says_what_goes_on_in_another_way) {
  const Copied copy("zero1_gpt2");
  const fs::path universal = copy.here() / "global_step4_universal";
  const Said decays{{"lr", number(2)}, {"weight_decay", number(1)}}, slow{{"lr", number(1)}};
  EXPECT_THAT(of_groups(universal, {decays}).notices.back(),
              EndsWith(": its weight decay was for all parameters; biases and norms will have none"));
  EXPECT_THAT(of_groups(universal, {decays, slow}).notices.back(),
              EndsWith(": its groups of parameters have different learning rates; all will have one"));
  const TheirModel greatest = of_groups(universal, {{{"amsgrad", "\x88"}}});
  EXPECT_FALSE(greatest.run);
  EXPECT_THAT(greatest.notices.back(),
              EndsWith(": weights alone are read: its Adam kept the greatest averages "
                       "(amsgrad), which weft's does not"));
}

TEST(DeepSpeedRunFound, counts_updates_where_its_optimizer_does) {
  const Copied copy("zero1_gpt2");
  const fs::path universal = copy.here() / "global_step4_universal";
  EXPECT_EQ(of_groups(universal, {{{"step", number(9)}}}).run->updates, 4);
  for (const auto& tensor : fs::directory_iterator(universal / "zero"))
    if (tensor.is_directory()) fs::remove(tensor.path() / "step.pt");
  EXPECT_EQ(of_groups(universal, {{{"step", number(9)}}}).run->updates, 9);
}

TEST(DeepSpeedTensors, have_names_of_their_own) {
  deepspeed::Tensors tensors("here");
  tensors.add("w", Shape{2}, Dtype::f32, {});
  EXPECT_EQ(refused([&] { tensors.add("w", Shape{2}, Dtype::f32, {}); }), "here: holds w twice");
}

TEST(DeepSpeedWeights, must_be_those_that_the_config_asks_for) {
  const Copied copy("zero3_llama");
  fs::copy_file(golden("zero1_gpt2") / "config.json", copy.here() / "config.json",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(refused([&] { (void)read_theirs(copy.here()).open(); }),
            (copy.here() / "global_step4").string() +
                ": lacks transformer.wte.weight, which embedding.words is made of");
}
