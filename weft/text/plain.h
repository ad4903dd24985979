// Tokenizers without a vocabulary: bytes as they are, and numbers written out.
#pragma once

#include <memory>

#include "weft/text/tokenizer.h"

namespace weft {

/// Megatron's byte-level library: a byte is its own id; eos 0, pad 1, special tokens down from the end.
struct ByteOptions {
  std::int32_t vocabulary = 512;
  std::vector<std::string> special;
};
[[nodiscard]] std::unique_ptr<Tokenizer> make_byte_tokenizer(const ByteOptions& options);

/// Text is ids in decimals with one space between; for measuring and tests. The newest rule: `vocabulary` as
/// given, eod its last id.
struct NullOptions {
  std::int32_t vocabulary = 0;
  std::optional<std::int32_t> eod, pad;
};
[[nodiscard]] std::unique_ptr<Tokenizer> make_null_tokenizer(const NullOptions& options);

}  // namespace weft
