// weft generate: the likeliest tokens are the model's, and what it cannot do is said.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/told.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "weft/cli/verbs.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;
using Json = nlohmann::json;

namespace {

const std::string models = std::string(WEFT_SOURCE_DIR) + "/tests/golden/exchange/";
const std::string model = models + "qwen3";

Told generate(const std::vector<std::string>& words) { return told(generate_verb(), words); }

/// Numbers as text: the ids themselves.
std::vector<std::string> with(std::vector<std::string> more) {
  std::vector<std::string> words{model, "--tokenizer", "null:37"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The prompt of the golden logits, and its likeliest next token.
struct Known {
  std::string prompt;
  std::string next;
};
Known known() {
  std::ifstream file(model + "/logits.json");
  const Json all = Json::parse(file);
  Known out;
  for (const int id : all["prompt"]) out.prompt += std::to_string(id) + " ";
  out.prompt.pop_back();
  const std::vector<double> last = all["logits"].back();
  out.next = std::to_string(std::ranges::max_element(last) - last.begin());
  return out;
}

std::string refused_by(const std::vector<std::string>& words) {
  const Told found = generate(words);
  EXPECT_EQ(found.status, 2);
  return found.err;
}

/// Words for a BERT of 37 ids.
std::string vocabulary_in(const TemporaryDirectory& folder) {
  const std::string file = (folder / "vocab.txt").string();
  std::ofstream out(file);
  out << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 5; i < 37; ++i) out << "word" << i << "\n";
  return "bert:" + file;
}

}  // namespace

// Its text ends in the id that config.json says ends one, and its answer starts as that says.
TEST(Generate, a_model_of_two_stacks_says_another_text) {
  std::ifstream file(models + "t5_gated/logits.json");
  const Json all = Json::parse(file);
  std::string prompt;
  for (std::size_t i = 0; i + 1 < all["source"].size(); ++i)
    prompt += (i > 0 ? " " : "") + std::to_string(all["source"][i].get<int>());
  const std::vector<double> first = all["logits"][0];
  const auto likeliest = std::to_string(std::ranges::max_element(first) - first.begin());
  const std::vector<std::string> words{models + "t5_gated", "--tokenizer", "null:37", "--prompt", prompt,
                                       "--tokens",          "1",           "--greedy"};
  const Told found = generate(words);
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.out, prompt + "\n" + likeliest + "\n");
}

TEST(Generate, a_bert_guesses_hidden_words) {
  const TemporaryDirectory folder;
  const std::vector<std::string> words{models + "bert_words", "--tokenizer", vocabulary_in(folder),
                                       "--prompt", "word7 [MASK] word9 [MASK]"};
  const Told found = generate(words);
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out,
              ::testing::MatchesRegex("word7 .MASK. word9 .MASK.\n([^ ]+ 0\\.[0-9]+  ){4}[^ ]+ 0\\.[0-9]+\n"
                                      "([^ ]+ 0\\.[0-9]+  ){4}[^ ]+ 0\\.[0-9]+\n"));
  std::vector<std::string> json = words;
  json.insert(json.end(), {"--json", "--top-k", "2"});
  const Json told = Json::parse(generate(json).out);
  ASSERT_EQ(told["masks"].size(), 2U);
  ASSERT_EQ(told["masks"][0].size(), 2U);
  EXPECT_GE(told["masks"][0][0]["probability"], told["masks"][0][1]["probability"]);
  EXPECT_THAT(told["text"],
              ::testing::StartsWith("word7 " + told["masks"][0][0]["token"].get<std::string>()));
}

TEST(Generate, a_bert_draws_nothing) {
  EXPECT_EQ(refused_by({models + "bert_words", "--tokenizer", "null:37", "--prompt", "3", "--seed", "3",
                        "--greedy"}),
            "generate: " + models +
                "bert_words is a model of the family bert, which guesses hidden words and draws none; leave "
                "--greedy, --seed out\n");
  EXPECT_EQ(refused_by({models + "bert_words", "--tokenizer", "null:37", "--prompt", "3"}),
            "generate: the tokenizer has no [MASK], which the model was trained with\n");
}

TEST(Generate, the_likeliest_token_is_that_of_transformers) {
  const Known golden = known();
  const Told found = generate(with({"--prompt", golden.prompt, "--tokens", "1", "--greedy", "--no-echo"}));
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.out, golden.next + "\n");
}

TEST(Generate, a_prompt_comes_from_a_file_too_and_is_printed_first) {
  const TemporaryDirectory folder;
  const Known golden = known();
  const std::string file = (folder / "prompt.txt").string();
  std::ofstream(file) << golden.prompt << "\n";
  EXPECT_EQ(generate(with({"--prompt-file", file, "--tokens", "1", "--greedy"})).out,
            golden.prompt + golden.next + "\n");
}

TEST(Generate, the_same_seed_gives_the_same_text_and_another_another) {
  const auto said = [](const std::string& seed) {
    const Told found = generate(with({"--prompt", "3 1 4", "--tokens", "12", "--json", "--seed", seed}));
    return Json::parse(found.out)["text"].get<std::string>();
  };
  EXPECT_EQ(said("5"), said("5"));
  EXPECT_NE(said("5"), said("6"));
}

TEST(Generate, stops_where_the_model_says_a_text_ends) {
  const TemporaryDirectory folder;
  const Known golden = known();
  std::filesystem::copy(model, folder / "model");
  std::ifstream from(model + "/config.json");
  Json config = Json::parse(from);
  config["eos_token_id"] = {2, std::stoi(golden.next)};
  std::ofstream(folder / "model/config.json") << config.dump();
  const Told found = generate({(folder / "model").string(), "--tokenizer", "null:37", "--prompt",
                               golden.prompt, "--greedy", "--no-echo"});
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.out, "\n");
}

// A template that writes the golden prompt, so that the answer is known.
TEST(Generate, answers_a_person_by_the_template) {
  const TemporaryDirectory folder;
  const Known golden = known();
  const std::string file = (folder / "chat.jinja").string();
  std::ofstream(file)
      << "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
         "{{ more }}{% if add_generation_prompt %}" +
             golden.prompt.substr(golden.prompt.rfind(' ')) + "{% endif %}";
  const std::string begin = golden.prompt.substr(0, golden.prompt.rfind(' '));
  const std::vector<std::string> words{"--chat", "--chat-template", file, "--prompt", begin, "--system",
                                       "x",      "--tokens",        "1",  "--greedy"};
  const Told found = generate(with(words));
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.out, golden.next + "\n");
  std::vector<std::string> loud = words;
  loud.emplace_back("--echo");
  EXPECT_EQ(generate(with(loud)).out, golden.prompt + golden.next + "\n");
  loud.insert(loud.end(), {"--json", "--chat-template-kwargs", R"({"more": " 3"})"});
  EXPECT_EQ(Json::parse(generate(with(loud)).out)["prompt"],
            begin + " 3" + golden.prompt.substr(golden.prompt.rfind(' ')));
}

TEST(Generate, answers_every_conversation_of_a_file) {
  const TemporaryDirectory folder;
  const Known golden = known();
  const std::string file = (folder / "said.jsonl").string();
  const Json said{{{"role", "user"}, {"content", golden.prompt}}};
  std::ofstream(file) << said.dump() << "\n" << Json{{"messages", said}, {"id", 7}}.dump() << "\n";
  const Told found =
      generate(with({"--chat-file", file, "--chat-template", "identity", "--tokens", "1", "--greedy"}));
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.out, golden.next + "\n" + golden.next + "\n");
}

TEST(Generate, an_answer_ends_where_generation_config_says_too) {
  const TemporaryDirectory folder;
  const Known golden = known();
  std::filesystem::copy(model, folder / "model");
  const std::string config = (folder / "model/generation_config.json").string();
  const auto said = [&](const Json& ends) {
    std::ofstream(config) << ends.dump();
    return generate({(folder / "model").string(), "--tokenizer", "null:37", "--prompt", golden.prompt,
                     "--greedy", "--no-echo", "--tokens", "1"});
  };
  EXPECT_EQ(said({{"eos_token_id", {2, std::stoi(golden.next)}}}).out, "\n");
  EXPECT_EQ(said({{"eos_token_id", nullptr}}).out, golden.next + "\n");
  EXPECT_EQ(said({{"eos_token_id", "x"}}).err,
            config + ": 'eos_token_id': expected an id or a list of ids\n");
  EXPECT_EQ(said(Json::array()).err, config + ": is no JSON object\n");
}

TEST(Generate, what_was_said_is_less_likely_where_generation_config_says_so) {
  const TemporaryDirectory folder;
  const Known golden = known();
  std::filesystem::copy(model, folder / "model");
  const std::string config = (folder / "model/generation_config.json").string();
  const std::string prompt = golden.prompt + " " + golden.next;  // what would come next is said already
  const auto said = [&](const Json& all, const std::vector<std::string>& more = {}) {
    std::ofstream(config) << all.dump();
    std::vector<std::string> words{(folder / "model").string(),
                                   "--tokenizer",
                                   "null:37",
                                   "--prompt",
                                   prompt,
                                   "--greedy",
                                   "--no-echo",
                                   "--tokens",
                                   "3"};
    words.insert(words.end(), more.begin(), more.end());
    return generate(words);
  };
  const Told plain = said(Json::object());
  const Told asked = said(Json::object(), {"--repetition-penalty", "50"});
  EXPECT_NE(asked.out, plain.out);
  const Told usual = said({{"repetition_penalty", 50.0}});
  EXPECT_EQ(usual.out, asked.out);
  EXPECT_EQ(usual.err, config + ": repetition_penalty 50 is taken; --repetition-penalty 1 leaves it out\n");
  EXPECT_EQ(said({{"repetition_penalty", 50.0}}, {"--repetition-penalty", "1"}).out, plain.out);
  EXPECT_EQ(said({{"repetition_penalty", -1}}).err,
            config + ": 'repetition_penalty': expected a number greater than 0\n");
}

TEST(Generate, a_conversation_says_what_is_missing) {
  const TemporaryDirectory folder;
  const std::string file = (folder / "said.jsonl").string(), refuses = (folder / "no.jinja").string();
  std::ofstream(file) << "{\"text\": 1}\n";
  std::ofstream(refuses) << "\n{{ raise_exception('roles must alternate') }}";
  EXPECT_EQ(
      refused_by(with({"--chat", "--prompt", "3"})),
      "generate: there is no chat template beside the tokenizer (chat_template.jinja, or 'chat_template' "
      "in tokenizer_config.json); give one with --chat-template\n");
  EXPECT_EQ(refused_by(with({"--system", "x", "--prompt", "3"})),
            "generate: --system does nothing without --chat\n");
  EXPECT_EQ(refused_by(with({"--chat-file", file, "--prompt", "3"})),
            "generate: --chat-file and --prompt contradict each other\n");
  EXPECT_EQ(
      refused_by(with({"--chat-file", file, "--chat-template", "identity"})),
      file + ": line 1 holds no conversation: expected a list of messages, or an object with 'messages'\n");
  EXPECT_EQ(refused_by(with({"--chat", "--prompt", "3", "--chat-template", "no/such.jinja"})),
            "generate: --chat-template: there is no file no/such.jinja\n");
  EXPECT_EQ(refused_by(with({"--chat", "--prompt", "3", "--chat-template", refuses})),
            refuses + ": line 2: the template refuses this conversation: roles must alternate\n");
  EXPECT_EQ(refused_by(with(
                {"--chat", "--prompt", "3", "--chat-template", "identity", "--chat-template-kwargs", "[]"})),
            "--chat-template-kwargs: expected a JSON object, not array\n");
  EXPECT_EQ(refused_by({models + "t5_gated", "--tokenizer", "null:37", "--chat", "--prompt", "3"}),
            "generate: " + models +
                "t5_gated is a model of the family t5, which does not go on from a text; leave --chat out\n");
}

TEST(Generate, says_what_is_missing_or_contradicts_itself) {
  const TemporaryDirectory folder;
  EXPECT_EQ(refused_by({"--prompt", "x"}),
            "generate: 0 models are named, expected one: a checkpoint, or a Hugging Face directory\n");
  EXPECT_EQ(refused_by({model, "--prompt", "x"}),
            "generate: " + model + " names no tokenizer; give one with --tokenizer\n");
  EXPECT_EQ(refused_by(with({"--prompt", "3", "--greedy", "--temperature", "0.5"})),
            "generate: --greedy and --temperature 0.5 contradict each other\n");
  EXPECT_EQ(refused_by(with({"--prompt", "3", "--prompt-file", "x"})),
            "generate: --prompt and --prompt-file contradict each other\n");
  EXPECT_EQ(refused_by(with({"--prompt", "3", "--tokens", "0"})),
            "generate: --tokens 0, expected 1 or more\n");
  EXPECT_EQ(refused_by(with({"--prompt", "3", "--top-p", "2"})),
            "--top-p: '2' is not a finite number from 0 to 1\n");
  std::ofstream(folder / "empty") << "\n";
  EXPECT_EQ(refused_by(with({"--prompt-file", (folder / "empty").string()})),
            "generate: the prompt is empty\n");
  EXPECT_EQ(refused_by({folder.path().string() + "/none", "--prompt", "x"}),
            folder.path().string() + "/none: is not there\n");
}
