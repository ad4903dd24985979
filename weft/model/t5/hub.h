// The type of T5s among Hugging Face's models: the first T5, whose output is its embedding, and T5 1.1.
#pragma once

#include <array>

#include "weft/model/hub.h"

namespace weft {

/// mT5 is a T5 1.1 under another name.
inline constexpr std::array<std::string_view, 2> t5_types{"t5", "mt5"};
inline constexpr std::array<StoredTwice, 3> t5_stored_twice{
    {{"encoder.embed_tokens.weight", "embedding.words"},
     {"decoder.embed_tokens.weight", "embedding.words"},
     {"lm_head.weight", "embedding.words"}}};

void read_t5(ModelConfig& model, HubSettings& settings, std::string_view type);
std::string_view type_for_t5(const ModelConfig& model);
nlohmann::ordered_json write_t5(const ModelConfig& model, std::string_view type);
std::vector<Recipe> t5_recipes(const ModelConfig& model, std::string_view type);
bool is_known_t5_table(std::string_view their_name);
ModelConfig plain_t5(ModelConfig model);
void settle_t5(ModelConfig& model, const IsStored& stored);

}  // namespace weft
