#include "weft/jobs/small.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "weft/base/flags.h"

namespace weft::jobs {
namespace {

constexpr int head_size = 8, sequence = 32, steps = 3, vocabulary = 128;

/// Flags that take one word, which are left out or get another value.
constexpr std::array one_word{"num-layers",
                              "hidden-size",
                              "ffn-hidden-size",
                              "num-attention-heads",
                              "kv-channels",
                              "seq-length",
                              "max-position-embeddings",
                              "global-batch-size",
                              "micro-batch-size",
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
                              "save",
                              "load",
                              "save-interval",
                              "eval-interval",
                              "eval-iters",
                              "log-interval",
                              "vocab-file",
                              "merge-file",
                              "vocab-size",
                              "tokenizer-type",
                              "tokenizer-model",
                              "data-path",
                              "split",
                              "data-impl",
                              "num-workers",
                              "tensorboard-dir",
                              "tensorboard-log-interval",
                              "tensorboard-queue-size",
                              "deepspeed-config",
                              "exit-interval",
                              "exit-duration-in-mins",
                              "num-query-groups"};
constexpr std::array no_word{"log-timers-to-tensorboard",         "log-batch-size-to-tensorboard",
                             "log-validation-ppl-to-tensorboard", "log-optimizer-states-to-tensorboard",
                             "log-memory-to-tensorboard",         "deepspeed"};

std::string name_of(std::string_view word) {
  if (!word.starts_with("--")) return "";
  return dashed(word.substr(2, std::min(word.find('='), word.size()) - 2));
}

template <class List>
bool in(const List& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

int degree(const std::vector<std::string>& words, std::string_view name) {
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
    if (in(no_word, name)) continue;
    if (!in(one_word, name)) {
      out.push_back(words[i]);
      continue;
    }
    if (words[i].find('=') == std::string::npos)
      while (i + 1 < words.size() && !words[i + 1].starts_with("--")) ++i;
  }
  return out;
}

}  // namespace

std::vector<std::string> made_small(const std::vector<std::string>& words, int ranks) {
  const int tp = degree(words, "tensor-model-parallel-size"),
            pp = degree(words, "pipeline-model-parallel-size");
  const int traded = degree(words, "ds-sequence-parallel-size");  // of ranks that trade heads
  const int cp = std::max(degree(words, "context-parallel-size"), traded);
  const int dp = std::max(1, ranks / (tp * pp * cp)), heads = std::max(2, tp * traded);
  std::vector<std::string> out = without(words);
  const auto set = [&](const char* name, const auto& value) {
    out.push_back(std::string("--") + name);
    out.push_back(std::to_string(value));
  };
  set("num-layers", std::max(2, pp));
  set("hidden-size", heads * head_size);
  set("num-attention-heads", heads);
  set("seq-length", sequence * cp);
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
