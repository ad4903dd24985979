// A training by the program's own words, on the emulated GPU or on the processor, and what came of it.
#pragma once

#include <gtest/gtest.h>
#include <runtime.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/told.h"
#include "tests/support/gpu/emulated.h"
#include "tests/support/temporary.h"
#include "weft/base/format.h"

namespace weft::cli {

using Words = std::vector<std::string>;

/// Losses by step, and what was said.
struct Training {
  int status = 0;
  std::map<int, double> losses;
  std::string err;
};

/// Two layers of 64 channels and two heads of 32, dropout on, a fraction of a second on a processor.
inline Words tiny_words(const std::string& family = "gpt") {
  Words words{"train", family};
  for (const char* pair :
       {"--num-layers 2", "--hidden-size 64", "--num-attention-heads 2", "--seq-length 16",
        "--max-position-embeddings 16", "--micro-batch-size 2", "--global-batch-size 4", "--lr 0.01",
        "--lr-decay-style constant", "--train-iters 3", "--vocab-size 61", "--make-vocab-size-divisible-by 8",
        "--init-method-std 0.1", "--eval-iters 1", "--eval-interval 100", "--log-interval 1", "--threads 1"})
    for (const std::string_view word : split(pair, ' ')) words.emplace_back(word);
  words.emplace_back("--mock-data");
  // Samples of other families lie in a stored order always; one of this takes a second to shuffle.
  if (family == "gpt") words.insert(words.end(), {"--data-order", "keyed"});
  return words;
}

/// What these words and those behind them come to; a flag that is there twice counts as it was said last.
inline Training trained(Words words, const Words& more, const std::string& device) {
  const support::TemporaryDirectory folder;
  const std::string log = (folder / "log.jsonl").string();
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--device", device, "--log-jsonl", log});
  const std::vector<std::string_view> views(words.begin(), words.end());
  const Told told = run_and_hear(views);
  Training run{.status = told.status, .losses = {}, .err = told.err};
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains("evaluation"))
      run.losses[json["iteration"].get<int>()] = json["lm_loss"].get<double>();
  }
  return run;
}

/// "" where as many steps have losses that part by no more.
inline std::string parted(const Training& a, const Training& b, double by) {
  if (a.losses.size() != b.losses.size() || a.losses.empty())
    return text(a.losses.size(), " and ", b.losses.size(), " steps: ", a.err, b.err);
  for (const auto& [step, loss] : a.losses)
    if (!b.losses.contains(step) || !(std::abs(loss - b.losses.at(step)) <= by))
      return text("losses of step ", step, " are ", loss, " and ", b.losses.at(step));
  return "";
}

/// What the watcher of the emulated GPU found since it was last asked.
inline std::string found() { return join(emulated::take_reports(), "; "); }

/// So many GPUs for one test, of so much free memory.
using Machine = emulated::CardsHere;

}  // namespace weft::cli
