// weft checkpoint convert --to megatron: what it writes, read again, and what Megatron has no words for.
// megatron-core itself reads the same releases in tests/oracle/megatron_release.py.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/going_on.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/checkpoint/step.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;
using ::testing::HasSubstr;
using Json = nlohmann::json;

namespace {

namespace fs = std::filesystem;

Told to_megatron(const std::string& model, const fs::path& to, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--to", "megatron", exchange_golden(model).string(), to.string()});
  return convert(std::move(more));
}

/// The bytes of every tensor of a step of weft's.
std::string numbers_in(const fs::path& run) {
  const std::string file = read_file(run / "step_00000000/rank_00000.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  return file.substr(sizeof header + header);
}

}  // namespace

TEST(MegatronRelease, is_read_again_with_every_number) {
  const TemporaryDirectory folder;
  for (const char* name : {"gpt2", "mistral", "qwen3", "glm", "nemotron", "mixtral", "qwen3_moe"}) {
    SCOPED_TRACE(name);
    const fs::path there = folder / name;
    const Told made = to_megatron(name, there);
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("the largest difference of a logit is 0, of logits up to "));
    EXPECT_EQ(read_file(there / "latest_checkpointed_iteration.txt"), "release");
    const NamedModel found = find_model(there);
    EXPECT_EQ(found.theirs->program, exchange::Program::megatron);
    EXPECT_FALSE(found.theirs->run);
  }
}

// What rounds a vocabulary up to Megatron's multiple is zeros.
TEST(MegatronRelease, pads_its_vocabulary_as_megatron_does) {
  const TemporaryDirectory folder;
  const fs::path there = folder / "there", ours = folder / "ours", direct = folder / "direct";
  to_megatron("gpt2", there);
  convert({there.string(), ours.string()});
  convert({exchange_golden("gpt2").string(), direct.string()});
  const ModelConfig padded = find_model(ours).settings.model, plain = find_model(direct).settings.model;
  EXPECT_EQ(padded.vocabulary, 128);
  const auto row = std::size_t(plain.hidden) * sizeof(float);
  const std::string theirs = numbers_in(ours), mine = numbers_in(direct);
  ASSERT_EQ(theirs.size(), mine.size() + std::size_t(128 - plain.vocabulary) * row);
  const std::size_t words = mine.size() == 0 ? 0 : std::size_t(plain.vocabulary) * row;
  const std::size_t at = theirs.find(mine.substr(0, words));
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(theirs.substr(at + words, std::size_t(128 - plain.vocabulary) * row),
            std::string(std::size_t(128 - plain.vocabulary) * row, '\0'));
}

TEST(MegatronRelease, is_made_of_a_step_of_wefts_too_and_goes_back) {
  const TemporaryDirectory folder;
  const fs::path ours = folder / "ours", there = folder / "there", back = folder / "back";
  convert({exchange_golden("mixtral").string(), ours.string()});
  const Told made = convert({"--to", "megatron", ours.string(), there.string()});
  EXPECT_EQ(made.status, 0) << made.err;
  const Told again = convert({"--to", "hf", "--json", there.string(), back.string()});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["largest_difference"], 0);
}

TEST(MegatronRelease, has_files_that_are_as_large_as_they_may_be) {
  const TemporaryDirectory folder;
  const Told made = to_megatron("qwen3", folder / "there", {"--json", "--shard-bytes", "8000"});
  EXPECT_EQ(made.status, 0) << made.err;
  const auto files = Json::parse(made.out)["files"].get<int>();
  EXPECT_GT(files, 3);
  for (int i = 0; i < files; ++i)
    EXPECT_TRUE(fs::exists(folder / text("there/release/__0_", i, ".distcp"))) << i;
  EXPECT_FALSE(fs::exists(folder / text("there/release/__0_", files, ".distcp")));
}

TEST(MegatronRelease, rounds_where_it_is_told_to_and_takes_a_tokenizer_along) {
  const TemporaryDirectory folder;
  const fs::path golden = fs::path(WEFT_SOURCE_DIR) / "tests/golden/text";
  const Told made = to_megatron("qwen3", folder / "there",
                                {"--dtype", "bf16", "--tokenizer", (golden / "toy_bpe_vocab.json").string()});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr(" of bf16 in 1 file"));
  EXPECT_THAT(made.out, HasSubstr("tokenizer: toy_bpe_vocab.json\n"));
  EXPECT_TRUE(fs::exists(folder / "there/release/tokenizer/toy_bpe_vocab.json"));
}

// load_args_from_checkpoint of Megatron-LM takes no more than it does.
TEST(MegatronRelease, names_the_flags_that_megatron_takes_from_no_checkpoint) {
  const TemporaryDirectory folder;
  const std::string begin =
      "Megatron-LM's --use-checkpoint-args leaves some of the model out, which its command line must say:";
  EXPECT_EQ(to_megatron("qwen3", folder / "qwen3").err, begin + " --norm-epsilon 1e-06 --qk-layernorm\n");
  EXPECT_EQ(to_megatron("mistral", folder / "mistral").err,
            begin + " --norm-epsilon 1e-06 --window-size 4,0\n");
  EXPECT_EQ(to_megatron("gpt2", folder / "gpt2").err, "");
}

TEST(MegatronRelease, is_trained_further) {
  const TemporaryDirectory folder;
  to_megatron("qwen3", folder / "there");
  const std::string words =
      "train gpt --load " + (folder / "there").string() +
      " --finetune --use-checkpoint-args --seq-length 8 --mock-data --micro-batch-size 1 --train-iters 2 "
      "--lr 1e-3 --eval-iters 0 --no-memory-check --tensor-model-parallel-size 2 --ranks 2";
  const Told run = run_and_hear(split(words, ' '));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("iteration        1/       2 "));
}

TEST(MegatronRelease, is_not_written_of_what_megatron_has_no_words_for) {
  const TemporaryDirectory folder;
  const std::string end = "; checkpoints of weft and of Hugging Face can hold it\n",
                    none = "Megatron-LM has no arguments for a model whose ";
  const std::pair<const char*, std::string> all[] = {
      {"opt", none + "activation is relu" + end},
      {"phi", none + "parallel_sublayers is one-norm" + end},
      {"gpt_oss", none + "rotary.scaling is yarn" + end},
      {"deepseek_v3", none + "latent.on is true" + end},
      {"bert", "weft writes GPTs in Megatron's form, and this is a bert" + end}};
  for (const auto& [name, said] : all) {
    const Told refused = to_megatron(name, folder / name);
    EXPECT_EQ(refused.status, 2) << name;
    EXPECT_EQ(refused.err, said) << name;
    EXPECT_FALSE(fs::exists(folder / name)) << name;
  }
}

TEST(MegatronRelease, is_written_beside_nothing_else) {
  const TemporaryDirectory folder;
  to_megatron("gpt2", folder / "there");
  const Told refused = to_megatron("gpt2", folder / "there");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err,
            (folder / "there").string() + ": holds a checkpoint of Megatron's; name another directory\n");
}
