// Byte-level BPE: GPT-2's vocab.json and merges.txt, tiktoken's ranks, and the trainer's own result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/bpe.h"
#include "weft/text/pipeline.h"
#include "weft/text/split.h"

namespace weft {

/// Cuts a stretch and merges the bytes of its pieces. Keeps caches of words for as many callers as there are.
struct ByteLevelParts {
  std::unique_ptr<Splitter> splitter;  // null: a stretch is one piece
  BytePairParts pairs;
  bool prefix_space = false;  // a stretch that begins with no space gets one
  bool keep_gaps = true;      // what the pattern does not match is a piece too; tiktoken drops it
};
[[nodiscard]] std::unique_ptr<StretchEncoder> make_byte_level(ByteLevelParts parts);

/// Tokens written in the byte alphabet to text.
[[nodiscard]] std::unique_ptr<Decoder> make_byte_level_decoder();

/// GPT-2's files, given as text. Where "<|endoftext|>" has no id it gets the next one; further special tokens
/// come behind it.
[[nodiscard]] std::unique_ptr<Tokenizer> make_gpt2(std::string_view vocab_json, std::string_view merges_txt,
                                                   const std::vector<std::string>& special = {});

struct TiktokenOptions {
  std::string pattern = "v2";  // v1, v2, r50k, cl100k, o200k, or a regular expression
  std::int64_t vocabulary = 131072;
  std::int64_t num_special = 1000;
  std::vector<std::string> special;  // in place of the seven usual ones, which it must hold
};
/// Megatron's JSON list of {rank, token_bytes, token_str}: special tokens first, ranks behind them.
[[nodiscard]] std::unique_ptr<Tokenizer> make_tiktoken_json(std::string_view json,
                                                            const TiktokenOptions& options);
/// OpenAI's file, "BASE64 RANK" a line: ranks are ids; special tokens as the pattern's vocabulary has them.
[[nodiscard]] std::unique_ptr<Tokenizer> make_tiktoken_ranks(std::string_view lines,
                                                             const TiktokenOptions& options);

/// The lines of merges.txt as pairs of names; the header and empty lines are no merges.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> read_merges(std::string_view merges_txt);

}  // namespace weft
