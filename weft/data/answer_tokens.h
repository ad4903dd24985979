// Which tokens of a text stand for given parts of it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weft/text/split.h"
#include "weft/text/tokenizer.h"

namespace weft::data {

/// Of each token of the text 1 where it holds a byte of a part, as transformers count. Parts follow each
/// other. Throws without a place where the tokens do not tell: cut at the parts' ends the text has others,
/// and what they are decoded to is not the text.
std::vector<std::uint8_t> tokens_within(const Tokenizer& tokenizer, std::string_view text,
                                        std::span<const std::int32_t> tokens,
                                        std::span<const ByteRange> parts);

}  // namespace weft::data
