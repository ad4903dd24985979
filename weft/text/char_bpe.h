// BPE over characters, as tokenizer.json's BPE model has it.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "weft/text/models.h"

namespace weft {

[[nodiscard]] std::unique_ptr<WordModel> make_char_bpe(const nlohmann::json& json);

/// Appends <0x41> and so on for every byte, if the vocabulary holds all of them.
bool append_byte_tokens(std::string_view bytes, const Vocabulary& vocabulary, std::vector<std::int32_t>& ids);

}  // namespace weft
