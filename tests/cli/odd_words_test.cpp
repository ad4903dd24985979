// Every option of every verb but train, with values that nobody means: refused by name, or legal for a
// reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "tests/cli/told.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "weft/base/error.h"
#include "weft/base/file.h"

using namespace weft;
using namespace weft::cli;
using ::testing::HasSubstr;

namespace {

constexpr const char* huge = "1000000000000000000";
constexpr std::array odd_words{"0", "-1", "NaN", "inf", huge, "word"};
const std::string model = WEFT_SOURCE_DIR "/tests/golden/exchange/qwen3";

/// Words with which a verb does a little, and the topic of its help whose options it then takes ("": any).
/// NEW is a place that is new each time, HERE where the option goes if not to the end.
struct Little {
  std::string verb, topic;
  std::vector<std::string> words;
};

std::vector<Little> littles() {
  const std::vector<std::string> tiny{"gpt",
                                      "--num-layers=1",
                                      "--hidden-size=16",
                                      "--num-attention-heads=2",
                                      "--seq-length=8",
                                      "--micro-batch-size=1",
                                      "--vocab-size=32"};
  std::vector<std::string> sample{"sample"}, bench{"train"};
  for (const std::string& word : tiny) {
    sample.push_back(word);
    bench.push_back(word);
  }
  for (const char* word : {"--lr=1e-3", "--train-iters=2", "--mock-data", "--data-order=keyed"})
    sample.emplace_back(word);
  return {
      {"bench", "", bench},
      {"checkpoint", "prune", {"prune", "saved", "--keep-last", "1", "--dry-run"}},
      {"checkpoint", "convert FROM TO", {"convert", model, "NEW"}},
      {"data", "", sample},
      {"generate", "", {model, "--tokenizer", "null:37", "--prompt", "3", "--tokens", "2", "--threads", "1"}},
      {"job", "Rendering", {"render", "--name", "x", "--image", "i:1", "HERE", "train", "gpt"}},
      {"job", "Rendering flags alone", {"render", "--name", "x", "--image", "i:1", "HERE", "train", "gpt"}},
      {"job", "Status, events, logs and resources", {"logs", "HERE", "--here", "--runs", "runs", "x"}},
      {"preprocess", "", {"--input", "lines.jsonl", "--output-prefix", "NEW", "--tokenizer", "byte"}},
      {"schedule", "", {"1f1b"}},
      {"schedule", "", {"--places"}},
      {"tokenizer", "train", {"train", "--output", "NEW", "--vocab-size", "300", "text.txt"}},
      {"tokenizer", "chat", {"chat", "--chat-template", "identity", "lines.jsonl"}},
      {"tokenizer",
       "encode, decode, inspect",
       {"encode", "--tokenizer-type", "NullTokenizer", "--vocab-size", "100", "--text", "1 2"}},
  };
}

/// Why a number passes, or is refused by a sentence that says what there is in place of the option's name.
const std::map<std::string, std::string> reasons{
    {"checkpoint --keep-steps 0", "a step that is not there keeps nothing"},
    {"checkpoint --shard-bytes 1000000000000000000", "all tensors are in one file"},
    {"data --index 0", "the first sample"},
    {"data --index 1000000000000000000", "the data say how many samples they have"},
    {"data --step 1000000000000000000", "the data say how many samples they have"},
    {"job --backoff-limit 0", "the first failure ends the job"},
    {"job --cpu 1000000000000000000", "a cluster knows what its machines have"},
    {"generate --tokens 1000000000000000000", "a text ends where positions do"},
    {"generate --temperature 0", "as --greedy"},
    {"generate --temperature 1000000000000000000", "all tokens are as likely"},
    {"generate --repetition-penalty 1000000000000000000", "what was said is not said again"},
    {"generate --seed 0", "any number names a text"},
    {"generate --seed 1000000000000000000", "any number names a text"},
    {"job --tail 0", "no line of any log"},
    {"preprocess --documents 0", "shows counts alone"},
    {"schedule --transfer 0", "tensors that need no time"},
    {"tokenizer --vocab-size 1000000000000000000", "training ends where no pair is left"},
    {"tokenizer --min-frequency 0", "every pair is seen as often"},
};
/// Ids and numbers of tokens, of which none is one.
const std::set<std::string> from_zero{"--vocab-extra-ids", "--tiktoken-num-special-tokens",
                                      "--null-tokenizer-eod-id", "--null-tokenizer-pad-id"};

bool may_pass(const std::string& verb, const Option& option, const std::string& word) {
  if (word == "0" && option.text.find("(0: ") != std::string::npos) return true;
  if (word == "0" && from_zero.contains(option.flag)) return true;
  if (word == "-1" && option.flag == "--null-tokenizer-pad-id") return true;  // what it is without the flag
  return reasons.contains(text(verb, " ", option.flag, " ", word));
}

class OddWords : public ::testing::Test {
 protected:
  OddWords() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
    write_atomically("lines.jsonl", "{\"text\": \"a b\"}\n{\"text\": \"c\"}\n");
    write_atomically("text.txt", "the quick brown fox jumps over the lazy dog\n");
    std::filesystem::create_directories("saved/step_00000001");
    std::filesystem::create_directories("runs/x");
  }
  ~OddWords() override { std::filesystem::current_path(before_); }

  Told tried(const Little& little, const std::string& odd) {
    std::vector<std::string> words{little.verb};
    bool placed = false;
    for (const std::string& word : little.words) {
      placed |= word == "HERE";
      words.push_back(word == "HERE" ? odd : word == "NEW" ? text("new_", ++places_) : word);
    }
    if (!placed) words.push_back(odd);
    return run_and_hear(std::vector<std::string_view>(words.begin(), words.end()));
  }
  void expect_told(const Little& little, const Option& option, const std::string& word) {
    const std::string who = text(little.verb, " ", option.flag, " ", word);
    const Told t = tried(little, text(option.flag, "=", word));
    ASSERT_TRUE(t.status == 0 || t.status == 2) << who << ": " << t.status << " " << t.err;
    EXPECT_TRUE(t.status == 0 || !t.err.empty()) << who;
    const bool number = option.value.starts_with("N") || option.value == "X" || option.value == "I";
    if (!number || option.value.starts_with("NAME") || may_pass(little.verb, option, word)) return;
    EXPECT_EQ(t.status, 2) << who << ": " << t.out.substr(0, 200);
    EXPECT_THAT(t.err, HasSubstr(option.flag)) << who;
  }

 private:
  std::filesystem::path before_;
  support::TemporaryDirectory folder_;
  int places_ = 0;
};

const Verb& verb_named(std::string_view name) {
  for (const Verb& verb : verbs())
    if (verb.name == name) return verb;
  fail(Kind::internal, "no verb is called ", name);
}

}  // namespace

TEST_F(OddWords, are_refused_by_name_or_legal_for_a_reason) {
  for (const Little& little : littles())
    for (const Topic& topic : verb_named(little.verb).help().topics) {
      if (!little.topic.empty() && topic.title != little.topic) continue;
      for (const Option& option : topic.options) {
        if (option.value.empty()) continue;
        for (const char* word : odd_words) expect_told(little, option, word);
      }
    }
}

// A new verb, or a new topic of one, is sent odd words, too.
TEST_F(OddWords, are_sent_to_every_option_that_takes_a_value) {
  const std::set<std::string_view> elsewhere{"train", "launch"};  // range_test.cpp, launch/options_test.cpp
  const auto all = littles();
  for (const Verb& verb : verbs()) {
    if (elsewhere.contains(verb.name)) continue;
    for (const Topic& topic : verb.help().topics) {
      const bool takes = std::ranges::any_of(topic.options, [](const Option& o) { return !o.value.empty(); });
      const bool sent = std::ranges::any_of(all, [&](const Little& l) {
        return l.verb == verb.name && (l.topic.empty() || l.topic == topic.title);
      });
      // weft job run starts training: what its two options name is a folder.
      EXPECT_TRUE(!takes || sent || topic.title == "Running") << verb.name << ": " << topic.title;
    }
  }
}
