// The words of a small training, as a person types them.
#pragma once

#include <string_view>
#include <vector>

#include "weft/base/format.h"

namespace weft::cli {

/// Two layers of 64 channels behind a verb. What is said behind them counts instead.
inline std::vector<std::string_view> small_training(std::string_view verb,
                                                    const std::vector<std::string_view>& more = {}) {
  std::vector<std::string_view> words{verb};
  if (verb == "bench") words.push_back("train");
  for (const std::string_view word : split(
           "gpt --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 4 "
           "--lr 1e-3 --train-iters 100 --mock-data --vocab-size 250",
           ' '))
    words.push_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace weft::cli
