// weft checkpoint convert: what it makes, what it says, and what it refuses.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/going_on.h"
#include "tests/support/temporary.h"
#include "weft/backend/open.h"
#include "weft/base/format.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/save.h"
#include "weft/checkpoint/step.h"
#include "weft/model/gpt/gpt.h"
#include "weft/train/resume_theirs.h"
#include "weft/train/resume_weights.h"
#include "weft/train/save_facts.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;
using ::testing::HasSubstr;
using Json = nlohmann::json;

namespace {

namespace fs = std::filesystem;

std::string model(const std::string& name) { return exchange_golden(name).string(); }
std::string refused_by(const std::vector<std::string>& words) {
  const Told found = convert(words);
  EXPECT_EQ(found.status, 2);
  return found.err;
}

const std::string texts = std::string(WEFT_SOURCE_DIR) + "/tests/golden/text/";

/// A GPT-2 whose directory holds the toy vocabulary, too.
void copy_model_with_tokenizer(const fs::path& to) {
  fs::copy(model("gpt2"), to);
  fs::copy(texts + "toy_bpe_vocab.json", to / "vocab.json");
  fs::copy(texts + "toy_bpe_merges.txt", to / "merges.txt");
}

const std::string cased_bert =
    "bert --tokenizer-type BertWordPieceCase --vocab-file " + texts + "toy_wordpiece_vocab.txt";

/// A run of one step becomes the folder's hub.
Told convert_a_run(const TemporaryDirectory& folder, const std::string& words) {
  const std::string run = (folder / "run").string();
  const std::string line =
      "train " + words +
      " --num-layers 1 --hidden-size 8 --num-attention-heads 2 --seq-length 8 --max-position-embeddings 8 "
      "--mock-data --micro-batch-size 1 --train-iters 1 --lr 1e-3 --eval-iters 0 --save-interval 1 "
      "--no-memory-check --save " +
      run;
  const Told trained = run_and_hear(split(line, ' '));
  EXPECT_EQ(trained.status, 0) << trained.err;
  return convert({run, (folder / "hub").string()});
}

}  // namespace

TEST(Convert, there_and_back_gives_every_logit_again) {
  const TemporaryDirectory folder;
  const std::string there = (folder / "there").string(), back = (folder / "back").string();
  const Told first = convert({model("qwen3"), there});
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("the largest difference of a logit is 0, of logits up to 3.7"));
  const Told second = convert({"--json", "--shard-bytes", "8000", there, back});
  EXPECT_EQ(second.status, 0) << second.err;
  const Json said = Json::parse(second.out);
  EXPECT_EQ(said["largest_difference"], 0);
  EXPECT_EQ(said["tensors"], 25);
  EXPECT_EQ(said["dtype"], "f32");
  EXPECT_GT(said["files"], 1);
  EXPECT_TRUE(fs::exists(folder / "back/model.safetensors.index.json"));
  EXPECT_TRUE(fs::exists(folder / "back/generation_config.json"));
  EXPECT_EQ(find_model(back).theirs->hub->type, "qwen3");
}

TEST(Convert, numbers_stay_as_they_are_stored_unless_told) {
  const TemporaryDirectory folder;
  const std::string there = (folder / "there").string(), back = (folder / "back").string();
  EXPECT_THAT(convert({model("mistral"), there}).out, HasSubstr(" of bf16 in 1 file"));
  EXPECT_THAT(convert({"--dtype", "f16", there, back}).out, HasSubstr(" of f16 in 1 file"));
  const Told rounded = convert({"--dtype", "bf16", "--json", model("llama3"), (folder / "rounded").string()});
  const double difference = Json::parse(rounded.out)["largest_difference"];
  EXPECT_LT(difference, 1e-5);  // of what was rounded in the same way
}

TEST(Convert, eight_bits_become_sixteen_unless_told) {
  const TemporaryDirectory folder;
  const Told rounded = convert({"--json", model("deepseek_v3_coded"), (folder / "rounded").string()});
  EXPECT_EQ(rounded.status, 0);
  EXPECT_EQ(Json::parse(rounded.out)["dtype"], "bf16");
  EXPECT_GT(Json::parse(rounded.out)["largest_difference"].get<double>(), 0);
  const Told whole =
      convert({"--dtype", "f32", "--json", model("deepseek_v3_coded"), (folder / "whole").string()});
  EXPECT_EQ(Json::parse(whole.out)["largest_difference"].get<double>(), 0);
}

TEST(Convert, takes_the_tokenizer_along_in_both_directions) {
  const TemporaryDirectory folder;
  copy_model_with_tokenizer(folder / "model");
  const std::string there = (folder / "there").string(), back = (folder / "back").string();
  EXPECT_THAT(convert({(folder / "model").string(), there}).out,
              HasSubstr("tokenizer: vocab.json, merges.txt\n"));
  EXPECT_EQ(find_model(there).settings.data.tokenizer.type, "GPT2BPETokenizer");
  EXPECT_THAT(convert({there, back}).out, HasSubstr("tokenizer: vocab.json, merges.txt\n"));
  EXPECT_EQ(tokenizer_in(back).vocab_file, (folder / "back/vocab.json").string());
  std::ifstream config(folder / "back/config.json");
  EXPECT_TRUE(Json::parse(config)["eos_token_id"].is_number());
}

// transformers finds no vocabulary under another name, and says nothing of it.
TEST(Convert, gives_the_files_of_a_run_the_names_that_are_looked_for) {
  const TemporaryDirectory folder;
  const std::string words = "gpt --tokenizer-type GPT2BPETokenizer --vocab-file " + texts +
                            "toy_bpe_vocab.json --merge-file " + texts + "toy_bpe_merges.txt";
  EXPECT_THAT(convert_a_run(folder, words).out, HasSubstr("tokenizer: vocab.json, merges.txt\n"));
  EXPECT_EQ(tokenizer_in(folder / "hub").merge_file, (folder / "hub/merges.txt").string());
}

TEST(Convert, says_beside_a_vocabulary_that_it_keeps_case) {
  const TemporaryDirectory folder;
  EXPECT_THAT(convert_a_run(folder, cased_bert + " --no-bias-gelu-fusion").out,
              HasSubstr("tokenizer: vocab.txt, tokenizer_config.json\n"));
  EXPECT_EQ(tokenizer_in(folder / "hub").type, "BertWordPieceCase");
}

TEST(Convert, leaves_nothing_of_a_model_that_it_cannot_write) {
  const TemporaryDirectory folder;
  const Told refused = convert_a_run(folder, cased_bert);  // whose gelu is the tanh form
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("activation"));
  EXPECT_FALSE(fs::exists(folder / "hub"));
}

TEST(Convert, takes_a_tokenizer_of_any_name) {
  const TemporaryDirectory folder;
  fs::copy(texts + "toy_wordpiece_vocab.txt", folder / "bert-vocab.txt");
  const std::string words = (folder / "bert-vocab.txt").string();
  for (const char* form : {"weft", "hf"}) {
    const Told made = convert({"--to", form, "--tokenizer", words,
                               form[0] == 'w' ? model("bert_words") : (folder / "weft").string(),
                               (folder / form).string()});
    EXPECT_THAT(made.out, HasSubstr("tokenizer: vocab.txt\n")) << made.err;
  }
  const std::string to = (folder / "to").string();
  EXPECT_EQ(
      refused_by({"--tokenizer", model("bert_words") + "/config", model("bert_words"), to}),
      "checkpoint convert: --tokenizer " + model("bert_words") +
          "/config: expected a directory, a tokenizer.json, a SentencePiece model that ends in .model, or "
          "words of WordPiece that end in .txt\n");
  EXPECT_EQ(
      refused_by({"--tokenizer", model("bert_words"), model("bert_words"), to}),
      "checkpoint convert: --tokenizer " + model("bert_words") +
          ": holds none of tokenizer.json, tokenizer.model, spiece.model, vocab.txt, and vocab.json with "
          "merges.txt\n");
  EXPECT_FALSE(fs::exists(to));
}

// The model has rows for what its config.json says, whatever the files beside it name besides.
TEST(Convert, a_tokenizer_of_more_tokens_changes_no_model) {
  const TemporaryDirectory folder;
  copy_model_with_tokenizer(folder / "model");
  const std::string from = (folder / "model").string(), save = (folder / "run").string();
  const auto rows = Json::parse(std::ifstream(folder / "model/config.json"))["vocab_size"].get<int>();
  const std::string words = "train gpt --load " + from + " --save " + save +
                            " --finetune --use-checkpoint-args --seq-length 8 --mock-data --micro-batch-size "
                            "1 --train-iters 1 --lr 1e-3"
                            " --eval-iters 0 --save-interval 1 --no-memory-check";
  const Told run = run_and_hear(split(words, ' '));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the tokenizer has 272 tokens, the model that is loaded knows " +
                                 std::to_string(rows) + ": data with the others are refused\n"));
  EXPECT_EQ(find_model(save).settings.model.vocabulary, rows);
}

TEST(Convert, takes_along_how_texts_end) {
  const TemporaryDirectory folder;
  copy_model_with_tokenizer(folder / "model");
  const auto write = [](const fs::path& file, const Json& json) { std::ofstream(file) << json.dump(); };
  const auto read = [](const fs::path& file) { return Json::parse(std::ifstream(file)); };
  write(folder / "model/generation_config.json", {{"eos_token_id", {3, 5}}, {"temperature", 0.6}});
  const std::string there = (folder / "there").string(), back = (folder / "back").string();
  convert({(folder / "model").string(), there});
  EXPECT_THAT(find_model(there).generation.ends, ::testing::IsSupersetOf({3, 5}));
  fs::remove_all(folder / "there/tokenizer");  // the step has its own
  convert({there, back});
  EXPECT_EQ(read(folder / "back/generation_config.json")["temperature"], 0.6);
  for (const char* name : {"back/generation_config.json", "back/config.json"})
    EXPECT_EQ(read(folder / name)["eos_token_id"].size(), 2U) << name;
}

TEST(Convert, writes_into_no_directory_that_holds_another_model) {
  const TemporaryDirectory folder;
  const std::string there = (folder / "there").string(), back = (folder / "back").string();
  convert({model("qwen3"), there});
  convert({there, back});
  EXPECT_EQ(refused_by({there, there}), there + ": holds checkpoints already; name another directory\n");
  EXPECT_EQ(refused_by({back, back}), back + ": holds a Hugging Face model; name another directory\n");
  EXPECT_FALSE(fs::exists(folder / "there/config.json"));
  EXPECT_FALSE(fs::exists(folder / "back/step_00000000"));
}

// What a token goes to may hang on the last bit of a router, on both sides alike.
TEST(Convert, experts_in_sixteen_bits_answer_as_the_same_rounded) {
  const TemporaryDirectory folder;
  for (const char* name : {"qwen3_moe", "deepseek_v3", "mixtral"}) {
    const std::string there = (folder / name).string(), back = there + "_back";
    const Told first = convert({"--dtype", "bf16", "--json", model(name), there});
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_LT(Json::parse(first.out)["largest_difference"].get<double>(), 1e-4) << name;
    const Told second = convert({"--dtype", "bf16", "--json", there, back});
    EXPECT_EQ(second.status, 0) << second.err;
    EXPECT_LT(Json::parse(second.out)["largest_difference"].get<double>(), 1e-4) << name;
  }
}

TEST(Convert, keeps_the_tokenizer_in_the_checkpoint_itself) {
  const TemporaryDirectory folder;
  copy_model_with_tokenizer(folder / "model");
  const std::string there = (folder / "there").string(), back = (folder / "back").string();
  convert({(folder / "model").string(), there});
  EXPECT_THAT(told(checkpoint_verb(), {"show", there}).out,
              HasSubstr("\n  tokenizer/merges.txt  " +
                        human_bytes(std::int64_t(fs::file_size(folder / "model/merges.txt")))));
  const std::vector<std::string> words{there, "--prompt", "!", "--tokens", "4", "--greedy"};
  const Told before = told(generate_verb(), words);
  EXPECT_EQ(before.status, 0) << before.err;
  fs::remove_all(folder / "there/tokenizer");
  const Told after = told(generate_verb(), words);
  EXPECT_EQ(after.out, before.out);
  const std::string copy = there + "/step_00000000/tokenizer/vocab.json";
  EXPECT_THAT(after.err, HasSubstr("tokenizer: " + there + "/tokenizer/vocab.json is not there; " + copy +
                                   ", which the checkpoint keeps, is used instead\n"));
  EXPECT_THAT(convert({there, back}).out, HasSubstr("tokenizer: vocab.json, merges.txt\n"));
}

namespace {

/// A checkpoint of a model of many layers, random.
NamedModel deep_model(const fs::path& root, int layers, bool tied) {
  TrainConfig config;
  config.model.layers = layers;
  config.model.hidden = config.model.ffn_hidden = 64;
  config.model.heads = 4;
  config.model.sequence = config.model.max_positions = 32;
  config.model.vocabulary = 100;
  config.model.tied_output = tied;
  complete(config.model);
  SoloCommunicator solo;
  const auto device = open_device("cpu", {.threads = 1});
  const Stage stage = build_gpt(config.model, {.layers = layers}, {.tp = solo}, *device);
  Weights weights([&](const VisitParameter& visit) { stage.each_parameter(visit); }, *device, Dtype::f32,
                  Weights::For::reading);
  weights.initialize(3);
  checkpoint::save(checkpoint::step_directory(root, 0), named_weights(weights),
                   to_json(RunFacts{.configuration = config}), solo);
  return find_model(root);
}

}  // namespace

// What is compared before a conversion is done: the largest part of a model fits where the model would not.
TEST(Convert, computes_logits_in_the_memory_of_a_layer) {
  for (const bool tied : {true, false}) {
    const TemporaryDirectory folder;
    const NamedModel named = deep_model(folder.path(), 24, tied);
    const std::vector<std::int32_t> text{1, 5, 9, 2, 77, 31};
    const auto device = open_device("cpu", {.threads = 1});
    const auto found = logits_in_parts(named, text, *device);
    const std::int64_t in_parts = device->memory().total_peak;
    ReadModel whole(named, Precision::f32, *device);
    EXPECT_EQ(found, TextReader(whole.here()).logits(text, std::ssize(text)));
    const std::int64_t parameters = checkpoint::OpenStep(named.path).bytes();
    EXPECT_GT(device->memory().total_peak, parameters);
    EXPECT_LT(in_parts, parameters / 8) << "24 layers";
  }
}

TEST(Convert, refuses_what_it_cannot_read_or_write) {
  const TemporaryDirectory folder;
  const std::string here = folder.path().string(), to = (folder / "to").string();
  EXPECT_EQ(refused_by({here}),
            "checkpoint convert: 1 models are named, expected two: the one to read and the one to make\n");
  EXPECT_EQ(refused_by({here + "/none", to}), "checkpoint convert: " + here + "/none is not there\n");
  EXPECT_EQ(refused_by({"--to", "hf", model("gpt2"), to}),
            "checkpoint convert: " + model("gpt2") + " is hf's already\n");
  EXPECT_EQ(refused_by({"--from", "weft", model("gpt2"), to}),
            "checkpoint convert: " + model("gpt2") + " is hf's, and --from weft is asked for\n");
  EXPECT_EQ(refused_by({"--shard-bytes", "0", model("gpt2"), to}),
            "checkpoint convert: --shard-bytes 0, expected 1 or more\n");
  EXPECT_EQ(refused_by({here, to}),
            here + ": no complete checkpoint: " + here + ": holds no directory of a step\n");
}

TEST(Convert, leaves_alone_what_is_there) {
  const TemporaryDirectory folder;
  const std::string there = (folder / "there").string();
  ASSERT_EQ(convert({model("gpt2"), there}).status, 0);
  EXPECT_EQ(refused_by({model("gpt2"), there}),
            there + ": holds checkpoints already; name another directory\n");
  fs::create_directory(folder / "taken");
  std::ofstream(folder / "taken/config.json") << "{}";
  EXPECT_EQ(refused_by({there, (folder / "taken").string()}),
            (folder / "taken").string() + ": holds a model already (config.json); name another directory\n");
}
