// Checkpoints that megatron-core 0.16.1 wrote, and the logits that it computed from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/exchange/hub.h"
#include "tests/exchange/megatron_files.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/comm/solo.h"
#include "weft/comm/threads.h"
#include "weft/exchange/megatron/weights.h"
#include "weft/exchange/their_model.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

namespace fs = std::filesystem;

/// Texts, and the logits of each of their words.
struct Probe {
  std::vector<std::vector<std::int32_t>> texts;
  std::vector<std::vector<float>> logits;
};
Probe probe_of(const fs::path& directory, std::int64_t words) {
  const checkpoint::TensorFile file(directory / "probe.safetensors");
  const Shape shape = file.at("logits").shape;
  const auto tokens = numbers_in<std::int64_t>(file, "tokens");
  const auto logits = numbers_in<float>(file, "logits");
  Probe out;
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    const auto text = tokens.begin() + i * shape[1];
    out.texts.emplace_back(text, text + shape[1]);
    out.logits.emplace_back();
    for (std::int64_t row = i * shape[1]; row < (i + 1) * shape[1]; ++row)
      out.logits.back().insert(out.logits.back().end(), logits.begin() + row * shape[2],
                               logits.begin() + row * shape[2] + words);
  }
  return out;
}

struct Case {
  const char* name;
  double within;  // of the largest logit
};

class Megatron : public ::testing::TestWithParam<Case> {
 protected:
  fs::path directory_ = megatron_golden(GetParam().name);
};

/// A copy that may be changed.
class Copied {
 public:
  explicit Copied(const std::string& name) {
    fs::copy(megatron_golden(name), here(), fs::copy_options::recursive);
  }
  fs::path here() const { return folder_ / "copy"; }
  fs::path iteration() const { return here() / "iter_0000004"; }

 private:
  TemporaryDirectory folder_;
};

std::string refused_by(const Copied& copy) {
  return refused([&] { (void)read_theirs(copy.here()).open(); });
}

}  // namespace

TEST_P(Megatron, logits_are_those_that_it_computed) {
  const TheirModel theirs = read_theirs(directory_);
  EXPECT_EQ(theirs.program, Program::megatron);
  SoloCommunicator solo;
  ReadModel model(theirs.model, solo);
  load_theirs(*theirs.open(), model.named(), solo);
  const Probe probe = probe_of(directory_, theirs.model.vocabulary);
  for (std::size_t i = 0; i < probe.texts.size(); ++i)
    EXPECT_LT(difference(model.logits(probe.texts[i]), probe.logits[i]), GetParam().within) << i;
}

// A rank reads its own boxes alone.
TEST_P(Megatron, logits_are_those_under_another_layout) {
  const TheirModel theirs = read_theirs(directory_);
  const Probe probe = probe_of(directory_, theirs.model.vocabulary);
  run_as_threads(2, [&](Communicator& world) {
    ReadModel model(theirs.model, world);
    load_theirs(*theirs.open(), model.named(), world);
    EXPECT_LT(difference(model.logits(probe.texts[0]), probe.logits[0]), GetParam().within);
  });
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Megatron,
                         ::testing::Values(Case{"gpt2_tp2", 1e-5}, Case{"qkln_sqrelu_tp2", 1e-5},
                                           Case{"llama_tp2_pp2_dp2.fully_reshardable", 1e-5},
                                           Case{"gpt2_tp2_pp2_legacy", 1e-5},
                                           Case{"llama_tp2_pp2_distopt_legacy", 1e-5}, Case{"moe_ep2", 1e-5},
                                           Case{"moe_grouped_ep2_bf16", 2e-2}),
                         [](const auto& one) {
                           std::string name = one.param.name;
                           for (char& c : name)
                             if (c == '.') c = '_';
                           return name;
                         });

TEST(MegatronFound, by_its_root_or_an_iteration) {
  EXPECT_EQ(megatron::find_iteration(megatron_golden("gpt2_tp2"))->directory.filename(), "iter_0000004");
  EXPECT_EQ(megatron::find_iteration(megatron_golden("gpt2_tp2") / "iter_0000004")->format,
            megatron::Format::sharded);
  EXPECT_EQ(megatron::find_iteration(megatron_golden("gpt2_tp2_pp2_legacy"))->format,
            megatron::Format::ranks);
  const TemporaryDirectory empty;
  EXPECT_FALSE(megatron::find_iteration(empty.path()));
  EXPECT_FALSE(program_of(empty.path()));
  EXPECT_EQ(refused([&] { (void)read_theirs(empty.path()); }),
            empty.path().string() + ": holds no model of Hugging Face's, Megatron's or DeepSpeed's");
}

TEST(MegatronFound, refuses_a_root_that_names_what_is_not_there) {
  const Copied copy("gpt2_tp2");
  const fs::path tracker = copy.here() / "latest_checkpointed_iteration.txt";
  write_atomically(tracker, std::string_view("12\n"));
  EXPECT_EQ(refused([&] { (void)megatron::find_iteration(copy.here()); }),
            tracker.string() + ": names iter_0000012, which is not there");
  write_atomically(tracker, std::string_view("soon"));
  EXPECT_EQ(refused([&] { (void)megatron::find_iteration(copy.here()); }),
            tracker.string() + ": says 'soon', expected an iteration or release");
  fs::create_directory(copy.here() / "release");
  write_atomically(tracker, std::string_view("release"));
  EXPECT_EQ(
      refused([&] { (void)megatron::find_iteration(copy.here()); }),
      (copy.here() / "release").string() +
          ": holds neither .metadata (torch_dist) nor mp_rank_0* (torch): weft reads no other format of "
          "Megatron's");
}

TEST(MegatronWeights, say_which_steps_they_are_after) {
  const TheirModel theirs = read_theirs(megatron_golden("moe_ep2"));
  EXPECT_THAT(theirs.notices,
              ::testing::ElementsAre(::testing::EndsWith("iter_0000004: the model after 4 steps")));
  EXPECT_EQ(theirs.model.experts.count, 4);
  EXPECT_EQ(theirs.model.vocabulary, 48);  // padded
}

TEST(MegatronWeights, need_every_file) {
  const Copied sharded("gpt2_tp2");
  fs::remove(sharded.iteration() / "__1_0.distcp");
  EXPECT_EQ(refused_by(sharded), (sharded.iteration() / ".metadata").string() +
                                     ": chunks lie in __1_0.distcp, which is not there");
  const Copied uncommon("gpt2_tp2");
  fs::remove(uncommon.iteration() / "common.pt");
  EXPECT_EQ(refused_by(uncommon),
            uncommon.iteration().string() +
                ": has neither common.pt nor common_state/shard_0_1, which say what the model is");
  const Copied ranks("gpt2_tp2_pp2_legacy");
  fs::remove_all(ranks.iteration() / "mp_rank_01_001");
  EXPECT_EQ(refused_by(ranks),
            ranks.iteration().string() +
                ": lacks mp_rank_01_001/model_optim_rng.pt of 2 x 2 x 1 tensor, pipeline and expert ranks");
  const Copied headless("gpt2_tp2_pp2_legacy");
  fs::remove_all(headless.iteration() / "mp_rank_00_000");
  EXPECT_EQ(refused_by(headless),
            headless.iteration().string() + ": has no mp_rank_00*/model_optim_rng.pt of the first rank");
}

TEST(MegatronWeights, are_no_longer_than_their_files) {
  const Copied cut("gpt2_tp2");
  fs::resize_file(cut.iteration() / "__0_1.distcp", 5000);
  EXPECT_THAT(refused_by(cut), HasSubstr("__0_1.distcp"));
}
