// The types of GPTs among Hugging Face's models.
#pragma once

#include <array>

#include "weft/model/hub.h"

namespace weft {

enum class GptType : std::uint8_t { gpt2, llama, mistral, qwen2, qwen3, gemma };
inline constexpr std::array<std::string_view, 6> gpt_types{"gpt2",  "llama", "mistral",
                                                           "qwen2", "qwen3", "gemma"};
inline constexpr std::array<StoredTwice, 1> gpt_stored_twice{{{"lm_head.weight", "embedding.words"}}};
GptType gpt_type(std::string_view word);

void read_gpt(ModelConfig& model, HubSettings& settings, std::string_view type);
std::string_view type_for_gpt(const ModelConfig& model);
nlohmann::ordered_json write_gpt(const ModelConfig& model, std::string_view type);
std::vector<Recipe> gpt_recipes(const ModelConfig& model, std::string_view type);
bool is_known_gpt_table(std::string_view their_name);
ModelConfig plain_gpt(ModelConfig model);

}  // namespace weft
