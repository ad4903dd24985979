// Fill-in-the-middle: the text of a sample is cut in three, and the middle is asked for last.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weft/data/gpt_dataset.h"
#include "weft/text/tokenizer.h"

namespace weft::data {

/// Documents end with `eod`. Each is permuted with probability `rate`: to prefix, suffix and middle, or with
/// probability `suffix_first_rate` to suffix, prefix and middle, a marker before each. Where `split` is set,
/// a document is permuted fragment by fragment between these tokens, each with probability `fragment_rate`.
struct FimRules {
  double rate = 0.5, suffix_first_rate = 0.5, fragment_rate = 0;
  std::optional<std::int32_t> split;
  std::string spared;  // text that begins so stays as it is
  std::int32_t prefix = 0, middle = 0, suffix = 0, pad = 0, eod = 0;
  std::uint64_t seed = 0;
};

/// Samples of another data set, permuted. What is chosen hangs on the seed and the sample's number alone, so
/// every rank, run and resumption sees the same; Megatron's choices hang on the order in which a process
/// reads.
std::shared_ptr<const Dataset> filled_in_the_middle(std::shared_ptr<const Dataset> of,
                                                    std::shared_ptr<const Tokenizer> tokenizer,
                                                    const FimRules& rules, const GptRows& rows);

}  // namespace weft::data
