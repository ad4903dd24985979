// Decoders of tokenizer.json: tokens to text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/text/pipeline.h"

namespace weft {

/// Joins "##" pieces to what is before them and, if asked, takes spaces from before punctuation.
[[nodiscard]] std::unique_ptr<Decoder> make_word_piece_decoder(const std::string& prefix, bool cleanup);

/// "decoder" of a tokenizer.json; null joins tokens with spaces.
[[nodiscard]] std::unique_ptr<Decoder> make_decoder(const nlohmann::json& json);

}  // namespace weft
