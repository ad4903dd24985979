// What Megatron-LM calls a tokenizer in the names of its cache files; it differs from version to version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

/// Releases whose names differ: core 0.18 and later, 0.15 to 0.17, up to 0.14.
enum class Upstream { core_0_18, core_0_16, core_0_14 };
inline constexpr Upstream newest_upstream = Upstream::core_0_18;
/// "0.18", "0.16", "0.14"; any release number in between gives the group it is of.
Upstream upstream_of(std::string_view version);

/// The tokenizer's flags, as given.
struct TokenizerFlags {
  std::string type;  // GPT2BPETokenizer, …
  std::optional<std::string> vocab_file, merge_file, model;
  std::optional<std::int64_t> vocab_size;
  std::vector<std::string> special_tokens;
  std::optional<std::string> tiktoken_pattern;
  std::int64_t tiktoken_num_special_tokens = 1000;
  std::int64_t vocab_extra_ids = 0;
  bool use_fast = true;                // not --tokenizer-hf-no-use-fast
  bool include_special_tokens = true;  // not --tokenizer-hf-no-include-special-tokens
  bool trust_remote_code = false;
  bool sentencepiece_legacy = false;
  bool ignore_extra_whitespaces = true;
  std::optional<std::int64_t> null_eod, null_pad;
};

/// The JSON object that a release puts in place of the tokenizer.
std::string tokenizer_identity(const TokenizerFlags& flags, Upstream upstream = newest_upstream);

}  // namespace weft::data
