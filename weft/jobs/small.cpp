#include "weft/jobs/small.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "weft/base/flags.h"

namespace weft::jobs {
namespace {

constexpr int head_size = 8, sequence = 32, steps = 3, vocabulary = 128;

/// Flags with words behind them, which are left out or get another value.
constexpr std::array worded{"num-layers",
                            "encoder-num-layers",
                            "decoder-num-layers",
                            "hidden-size",
                            "ffn-hidden-size",
                            "moe-ffn-hidden-size",
                            "num-attention-heads",
                            "num-query-groups",
                            "kv-channels",
                            "seq-length",
                            "encoder-seq-length",
                            "decoder-seq-length",
                            "max-position-embeddings",
                            "vocab-size",
                            "padded-vocab-size",
                            "num-layers-per-virtual-pipeline-stage",
                            "num-virtual-stages-per-pipeline-rank",
                            "pipeline-model-parallel-layout",
                            "decoder-first-pipeline-num-layers",
                            "decoder-last-pipeline-num-layers",
                            "num-layers-in-first-pipeline-stage",
                            "num-layers-in-last-pipeline-stage",
                            "global-batch-size",
                            "micro-batch-size",
                            "eval-global-batch-size",
                            "eval-micro-batch-size",
                            "rampup-batch-size",
                            "step-batch-size-schedule",
                            "train-iters",
                            "train-samples",
                            "train-tokens",
                            "lr-decay-iters",
                            "lr-decay-samples",
                            "lr-decay-tokens",
                            "lr-warmup-iters",
                            "lr-warmup-samples",
                            "lr-warmup-tokens",
                            "lr-warmup-fraction",
                            "lr-wsd-decay-iters",
                            "lr-wsd-decay-samples",
                            "curriculum-schedule",
                            "curriculum-form",
                            "curriculum-min-length",
                            "curriculum-max-length",
                            "curriculum-steps",
                            "curriculum-multiple",
                            "curriculum-root",
                            "curriculum-lengths",
                            "curriculum-until",
                            "token-drop-layers",
                            "token-drop-min-tokens",
                            "token-drop-max-tokens",
                            "token-drop-steps",
                            "token-drop-multiple",
                            "save",
                            "load",
                            "save-interval",
                            "ckpt-step",
                            "pretrained-checkpoint",
                            "eval-interval",
                            "eval-iters",
                            "log-interval",
                            "log-jsonl",
                            "exit-interval",
                            "exit-duration-in-mins",
                            "vocab-file",
                            "merge-file",
                            "tokenizer-type",
                            "tokenizer-model",
                            "data-path",
                            "train-data-path",
                            "valid-data-path",
                            "test-data-path",
                            "data-args-path",
                            "per-split-data-args-path",
                            "data-cache-path",
                            "split",
                            "data-impl",
                            "num-workers",
                            "tensorboard-dir",
                            "tensorboard-log-interval",
                            "tensorboard-queue-size"};
constexpr std::array bare{"log-timers-to-tensorboard",         "log-batch-size-to-tensorboard",
                          "log-validation-ppl-to-tensorboard", "log-optimizer-states-to-tensorboard",
                          "log-memory-to-tensorboard",         "use-checkpoint-args",
                          "exit-on-missing-checkpoint",        "finetune"};

std::string name_of(std::string_view word) {
  if (!word.starts_with("--")) return "";
  return dashed(word.substr(2, std::min(word.find('='), word.size()) - 2));
}

template <class List>
bool in(const List& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

/// 1 where the words do not say it.
int number(const std::vector<std::string>& words, std::string_view name) {
  int out = 1;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (name_of(words[i]) != name) continue;
    const auto equals = words[i].find('=');
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[i + 1]
                                                          : "";
    std::from_chars(value.data(), value.data() + value.size(), out);
  }
  return std::clamp(out, 1, 1 << 10);
}

std::vector<std::string> without(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = name_of(words[i]);
    if (in(bare, name)) continue;
    if (!in(worded, name)) {
      out.push_back(words[i]);
      continue;
    }
    if (words[i].find('=') == std::string::npos)
      while (i + 1 < words.size() && !words[i + 1].starts_with("--")) ++i;
  }
  return out;
}

bool says(const std::vector<std::string>& words, std::string_view name) {
  return std::ranges::find(words, name, name_of) != words.end();
}

/// A layer for each of a rank's stages: how many these are, the job's own layers say.
int stages_of_a_rank(const std::vector<std::string>& words, int pp) {
  constexpr std::string_view each = "num-layers-per-virtual-pipeline-stage";
  if (!says(words, each)) return number(words, "num-virtual-stages-per-pipeline-rank");
  return std::max(1, number(words, "num-layers") / (pp * number(words, each)));
}

}  // namespace

std::vector<std::string> made_small(const std::vector<std::string>& words, int ranks) {
  const int tp = number(words, "tensor-model-parallel-size"),
            pp = number(words, "pipeline-model-parallel-size");
  const int traded = number(words, "ds-sequence-parallel-size");  // of ranks that trade heads
  const int cp = std::max(number(words, "context-parallel-size"), traded);
  const int dp = std::max(1, ranks / (tp * pp * cp)), heads = std::max(2, tp * traded);
  const int stages = stages_of_a_rank(words, pp);
  std::vector<std::string> out = without(words);
  const auto set = [&](const char* name, const auto& value) {
    out.push_back(std::string("--") + name);
    out.push_back(std::to_string(value));
  };
  set("num-layers", std::max(2, pp * stages));
  if (stages > 1) set("num-virtual-stages-per-pipeline-rank", stages);
  set("hidden-size", heads * head_size);
  set("num-attention-heads", heads);
  set("seq-length", sequence * cp);
  if (says(words, "decoder-seq-length")) set("decoder-seq-length", sequence * cp);
  set("max-position-embeddings", sequence * cp);
  set("micro-batch-size", 1);
  set("global-batch-size", 2 * dp);
  set("train-iters", steps);
  set("vocab-size", vocabulary);
  set("eval-iters", 0);
  set("log-interval", 1);
  set("threads", 1);
  out.insert(out.end(), {"--mock-data", "--data-order", "keyed"});
  return out;
}

}  // namespace weft::jobs
