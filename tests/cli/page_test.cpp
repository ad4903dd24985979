// docs/flags.md against the program: every value of every flag, as a reader of the page would try it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "tests/cli/told.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect.h"

using namespace weft;
using namespace weft::cli;
using testing::HasSubstr;

namespace {

struct Line {
  std::string flag, treatment, text;
  std::vector<std::string> values;  // that the page lists; a placeholder such as N is none
  bool takes_a_value = false;
};

/// "| `--flag a\|b` | honored | text |"
Line read_line(const std::string& from) {
  const std::string mark = "` | ";
  const auto end = from.find(mark), next = from.find(" | ", end + mark.size());
  std::string head = from.substr(5, end - 5);
  Line line{.treatment = from.substr(end + mark.size(), next - end - mark.size()),
            .text = from.substr(next + 3, from.size() - next - 5)};
  const auto space = head.find(' ');
  line.flag = head.substr(0, space);
  line.takes_a_value = space != std::string::npos;
  if (!line.takes_a_value) return line;
  std::string listed = head.substr(space + 1);
  if (listed.ends_with(" ...")) listed.resize(listed.size() - 4);  // several may be given
  for (std::size_t at = 0; (at = listed.find("\\|", at)) != std::string::npos;) listed.erase(at, 1);
  for (const std::string_view value : split(listed, '|'))
    if (std::any_of(value.begin(), value.end(), [](char c) { return c >= 'a' && c <= 'z'; }) ||
        value.find_first_of("0123456789") != std::string_view::npos)
      line.values.emplace_back(value);
  return line;
}

std::vector<Line> page() {
  std::ifstream in(WEFT_SOURCE_DIR "/docs/flags.md");
  std::vector<Line> out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## Rules of Megatron-LM")) break;
    if (line.starts_with("| `--")) out.push_back(read_line(line));
  }
  return out;
}

/// What the reader of a command line says to the flag alone: a refusal, notices, or nothing.
std::string said_to(const std::string& flag, const std::string& value) {
  const std::string word = value.empty() ? text("--", flag) : text("--", flag, "=", value);
  const std::vector<std::string_view> words = {word};
  try {
    const auto command = read_command(words);
    return join(command->notices, "");
  } catch (const Error& e) {
    return e.what();
  }
}

constexpr const char* spread = "--num-experts=4 --ranks=2 --expert-model-parallel-size=2";

/// Files and settings without which a value cannot be taken.
class Beside {
 public:
  Beside() {
    const std::string golden = WEFT_SOURCE_DIR "/tests/golden/text/";
    write_file("w.json", R"({"model":{"type":"WordLevel","unk_token":"<unk>","vocab":{"<unk>":0,"a":1}}})");
    write_file("ranks.tiktoken", ranks_of_bytes());
    const std::string
        bpe = text("--vocab-file=", golden, "toy_bpe_vocab.json --merge-file=", golden, "toy_bpe_merges.txt"),
        pieces = text("--tokenizer-model=", golden, "toy.model"),
        words = text("--vocab-file=", golden, "toy_wordpiece_vocab.txt"),
        letters = text("--tokenizer-model=", folder_.path().string(), "/w.json"),
        markers = "--tokenizer-special-tokens <fim_prefix> <fim_middle> <fim_suffix> <fim_pad> <|endoftext|>";
    of_ = {{"non-finite rescale", "--fp16"},
           {"use-rope-scaling", "--position-embedding-type=rope"},
           {"weight-decay-incr-style linear", "--start-weight-decay=0 --end-weight-decay=1"},
           {"weight-decay-incr-style cosine", "--start-weight-decay=0 --end-weight-decay=1"},
           {"curriculum-schedule fixed_linear", "--curriculum-min-length=8 --curriculum-steps=2"},
           {"curriculum-schedule fixed_root",
            "--curriculum-min-length=8 --curriculum-steps=2 --curriculum-root=2"},
           {"curriculum-schedule fixed_discrete", "--curriculum-lengths 8 16 --curriculum-until 1"},
           {"mtp-use-repeated-layer", "--mtp-num-layers=2"},
           {"rope-type longrope",
            "--longrope-short-factors 1 1 1 1 --longrope-long-factors 1 1 1 1 "
            "--longrope-original-max-position-embeddings=8"},
           {"qk-l2-norm-turning", "--qk-l2-norm"},
           {"qk-layernorm-turned", "--qk-layernorm"},
           {"moe-apply-probs-on-input", "--num-experts=4"},
           {"mlp-type residual", "--num-experts=4"},
           {"exp-avg-dtype", "--use-precision-aware-optimizer"},
           {"exp-avg-sq-dtype", "--use-precision-aware-optimizer"},
           {"main-grads-dtype", "--bf16"},
           {"megatron-fsdp-main-grads-dtype", "--bf16"},
           {"optimizer-cpu-offload", "--offload-directory=spill"},
           {"tokenizer-type BertWordPieceLowerCase", words},
           {"tokenizer-type BertWordPieceCase", words},
           {"tokenizer-type GPT2BPETokenizer", bpe},
           {"tokenizer-type SentencePieceTokenizer", pieces},
           {"tokenizer-type GPTSentencePieceTokenizer", pieces},
           {"tokenizer-type Llama2Tokenizer", pieces},
           {"tokenizer-type HuggingFaceTokenizer", letters},
           {"tokenizer-type HFTokenizer", letters},
           {"tokenizer-type SFTTokenizer", letters},
           {"sft", "--tokenizer-type=SFTTokenizer " + letters},
           {"tokenizer-type TikTokenizer",
            text("--vocab-size=1300 --tokenizer-model=", folder_.path().string(), "/ranks.tiktoken")},
           {"tokenizer-type ByteLevelTokenizer", "--vocab-size=512"},
           {"fim-data", text(bpe, " ", markers)},
           {"verify-resume", "--save=ck --save-interval=1"},
           {"async-save", "--save=ck --save-interval=1"},
           {"log-progress", "--save=ck --save-interval=1"},
           {"finetune", "--load=ck --allow-fresh-start"},
           {"moe-layer-recompute", "--num-experts=4"},
           {"overlap-moe-expert-parallel-comm", spread},
           {"delay-wgrad-compute", text(spread, " --overlap-moe-expert-parallel-comm")},
           {"enable-zbh1-pipeline", "--ranks=2 --pipeline-model-parallel-size=2"},
           {"zero-quantized-weights", "--ranks=2 --zero-stage=3"},
           {"zero-quantized-gradients", "--ranks=2 --zero-stage=2"},
           {"spec", "--hybrid-layer-pattern=*-"},
           {"moe-use-upcycling", "--load=ck --num-experts=4"},
           {"experimental-attention-variant", "--swiglu --linear-attention-freq=2"}};
  }
  std::vector<std::string> of(const std::string& flag, const std::string& value) const {
    for (const std::string& key : {text(flag, " ", value), flag})
      if (const auto found = of_.find(key); found != of_.end()) {
        std::vector<std::string> words;
        for (const std::string_view word : split(found->second, ' ')) words.emplace_back(word);
        return words;
      }
    return {};
  }

 private:
  void write_file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
  }
  static std::string ranks_of_bytes() {
    std::string ranks;
    for (int byte = 0; byte < 256; ++byte) ranks += base64(byte) + text(" ", byte, "\n");
    return ranks;
  }
  static std::string base64(int byte) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return {digits[std::size_t(byte >> 2)], digits[std::size_t(byte & 3) << 4], '=', '='};
  }

  support::TemporaryDirectory folder_;
  std::map<std::string, std::string, std::less<>> of_;
};

/// A tiny model with such a value, up to the plan of its run.
Told planned_with(const std::string& flag, const std::string& value, const Beside& beside) {
  const auto& all = verbs();
  const auto train = std::ranges::find(all, "train", &Verb::name);
  const bool t5 = value == "relative";
  std::vector<std::string> words = {t5 ? "t5" : "gpt",
                                    "--num-layers=2",
                                    "--hidden-size=16",
                                    "--num-attention-heads=2",
                                    "--seq-length=16",
                                    "--micro-batch-size=1",
                                    "--lr=1e-3",
                                    "--train-iters=2",
                                    "--vocab-size=250",
                                    "--dry-run",
                                    flag == "sft" ? "--data-path=talk.jsonl" : "--mock-data"};
  if (t5) words.emplace_back("--decoder-seq-length=16");
  for (std::string& word : beside.of(flag, value)) words.push_back(std::move(word));
  words.push_back(value.empty() ? text("--", flag) : text("--", flag, "=", value));
  return told(*train, words);
}

/// "x refused: reason; y refused: reason: help" as pairs.
std::vector<std::pair<std::string, std::string>> refusals(const Line& line) {
  std::vector<std::pair<std::string, std::string>> out;
  const std::string mark = " refused: ";
  for (std::size_t at = 0; (at = line.text.find(mark, at)) != std::string::npos; at += mark.size()) {
    const auto word = line.text.find_last_of(' ', at - 1) + 1;
    const auto reason = at + mark.size(),
               end = std::min(line.text.find_first_of(";:", reason), line.text.size());
    out.emplace_back(line.text.substr(word, at - word), line.text.substr(reason, end - reason));
  }
  return out;
}

}  // namespace

TEST(Page, lists_values_that_the_program_takes) {
  const Beside beside;
  int tried = 0;
  for (const Line& line : page()) {
    if (line.treatment != "honored" || line.flag == "use-checkpoint-args")
      continue;  // a checkpoint must be there
    std::vector<std::string> values = line.values;
    if (!line.takes_a_value) values.emplace_back();
    for (const std::string& value : values) {
      EXPECT_EQ(said_to(line.flag, value), "") << line.flag << " " << value;
      const Told t = planned_with(line.flag, value, beside);
      EXPECT_EQ(t.status, 0) << line.flag << " " << value << ": " << t.err;
      ++tried;
    }
  }
  EXPECT_GT(tried, 200);
}

TEST(Page, says_which_values_are_refused_and_why) {
  int tried = 0;
  for (const Line& line : page())
    for (const auto& [value, reason] : refusals(line)) {
      const std::string word = value == "values" ? "nothing-of-the-kind" : value;
      EXPECT_THAT(said_to(line.flag, word), HasSubstr(text("weft cannot do this yet: ", reason)))
          << line.flag;
      ++tried;
    }
  EXPECT_GT(tried, 17);
}

TEST(Page, says_what_becomes_of_every_other_flag) {
  for (const Line& line : page()) {
    const std::string bare = said_to(line.flag, ""),
                      said = bare.find("needs ") != std::string::npos ? said_to(line.flag, "1") : bare;
    if (line.treatment == "no effect here") {
      EXPECT_EQ(said, text("no effect here: --", line.flag, " (", line.text, ")"));
    } else if (line.treatment == "refused" || line.treatment == "foreign") {
      EXPECT_EQ(said, text("weft cannot do this yet: ", line.text, ": --", line.flag));
    } else if (line.treatment == "gone") {
      EXPECT_THAT(said, HasSubstr("is gone from Megatron-LM"));
    }
  }
}
