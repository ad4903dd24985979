// The types of BERTs among Hugging Face's models.
#pragma once

#include <array>

#include "weft/model/hub.h"

namespace weft {

/// Norms behind the sums (BertForPreTraining and BertForMaskedLM), or before what is added (the same of
/// MegatronBert). RoBERTa's are a BERT's words under other names, with places behind what pads.
enum class BertType : std::uint8_t { bert, megatron, roberta, xlm_roberta, camembert };
inline constexpr std::array<std::string_view, 5> bert_types{"bert", "megatron-bert", "roberta", "xlm-roberta",
                                                            "camembert"};
BertType bert_type(std::string_view word);
constexpr bool is_roberta(BertType type) { return type >= BertType::roberta; }
/// Rows of RoBERTa's places that no word of a text has: up to that of what pads.
inline constexpr std::int64_t places_in_front = 2;
inline constexpr std::array<StoredTwice, 4> bert_stored_twice{
    {{"cls.predictions.decoder.weight", "embedding.words"},
     {"cls.predictions.decoder.bias", "output.bias"},
     {"lm_head.decoder.weight", "embedding.words"},
     {"lm_head.decoder.bias", "output.bias"}}};

void read_bert(ModelConfig& model, HubSettings& settings, std::string_view type);
std::string_view type_for_bert(const ModelConfig& model);
nlohmann::ordered_json write_bert(const ModelConfig& model, std::string_view type);
std::vector<Recipe> bert_recipes(const ModelConfig& model, std::string_view type);
bool is_known_bert_table(std::string_view their_name);
ModelConfig plain_bert(ModelConfig model);
std::vector<Theirs> beside_a_bert(const ModelConfig& model);

}  // namespace weft
