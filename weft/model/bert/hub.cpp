// A BERT's config.json, both ways; what weft or transformers cannot compute is refused by name.
#include "weft/model/bert/hub.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

std::string_view nobody_has(const ModelConfig& m) {
  if (m.positions != Positions::learned) return "an encoder without learned positions";
  if (m.norm != NormKind::layer) return "an encoder with an RMS norm";
  if (m.gated) return "an encoder with a gated MLP";
  if (!m.linear_bias || !m.qkv_bias) return "an encoder without biases";
  if (!m.project_bias || !m.norm_bias) return "an encoder without biases of norms or projections";
  if (m.groups != m.heads) return "an encoder with grouped heads";
  if (m.qk_norm) return "an encoder with query and key norms";
  if (m.residual_multiplier != 1) return "an encoder with a multiplier of what attention and MLPs add";
  if (m.channels * m.heads != m.hidden) return "an encoder with heads that are not hidden / heads wide";
  if (m.embedding_multiplier != 1) return "an encoder with an embedding multiplier";
  if (m.mup.on) return "an encoder with multipliers of muP";
  if (m.output_multiplier != 1) return "an encoder with an output multiplier";
  if (!m.output_bias) return "an encoder without biases of its logits";
  if (m.softmax_scale != 0 && std::abs(m.softmax_scale * std::sqrt(double(m.channels)) - 1) > 1e-9)
    return "a softmax scale of its own";
  // One setting says the activation of MLP and output alike.
  if (m.activation != Activation::gelu_erf)
    return "an encoder with another activation in its MLP than the exact gelu of its output: train with "
           "{model.activation=gelu_erf}";
  return "";
}

/// Whether config.json says that the words' head stands alone: without pooler and sentence order, which
/// transformers passes over where files hold them all the same.
bool hidden_words_only(HubSettings& s) {
  const HubSettings::Json* names = s.find("architectures");
  if (names == nullptr || !names->is_array()) return false;
  return std::ranges::any_of(*names, [](const HubSettings::Json& name) {
    return name.is_string() && name.get<std::string>().ends_with("ForMaskedLM");
  });
}

std::string class_name(const ModelConfig& m) {
  return text(m.residual_after_norm ? "Bert" : "MegatronBert",
              m.sentence_order ? "ForPreTraining" : "ForMaskedLM");
}

}  // namespace

BertType bert_type(std::string_view word) {
  return BertType(std::ranges::find(bert_types, word) - bert_types.begin());
}

void read_bert(ModelConfig& m, HubSettings& s, std::string_view type) {
  const bool roberta = is_roberta(bert_type(type));
  m.layers = int(s.size("num_hidden_layers", HubSettings::most_layers));
  m.hidden = s.size("hidden_size", HubSettings::widest);
  m.heads = int(s.size("num_attention_heads", HubSettings::most_heads));
  m.ffn_hidden = s.size("intermediate_size", HubSettings::widest);
  m.max_positions = s.size("max_position_embeddings");
  if (roberta && m.max_positions <= places_in_front)
    s.refuse("max_position_embeddings", text("expected more than ", places_in_front));
  if (roberta) m.max_positions -= places_in_front;
  m.norm_epsilon = s.positive("layer_norm_eps", 1e-12);
  m.hidden_dropout = s.fraction("hidden_dropout_prob", 0.1);
  m.attention_dropout = s.fraction("attention_probs_dropout_prob", 0.1);
  m.tied_output = s.yes("tie_word_embeddings", true);
  m.activation = hub_activation(s.word("hidden_act", "gelu"), s, "hidden_act");
  if (m.activation != Activation::gelu_erf)
    s.refuse("hidden_act", "weft's transform before the output has the exact gelu, \"gelu\"");
  m.sentence_order = !roberta && !hidden_words_only(s);
  m.token_types = !m.sentence_order;
  m.residual_after_norm = bert_type(type) != BertType::megatron;
  s.must_be("type_vocab_size", roberta ? 1 : 2);
  if (roberta) s.must_be("pad_token_id", 1);  // places are counted from behind it
  s.must_be("position_embedding_type", "absolute");
  s.must_be("add_cross_attention", false);
  for (const char* of_other_tasks :
       {"classifier_dropout", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
        "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"})
    (void)s.find(of_other_tasks);
}

std::string_view type_for_bert(const ModelConfig& m) {
  if (const std::string_view reason = nobody_has(m); !reason.empty())
    fail(Kind::usage, "exchange: no Hugging Face model that weft writes (bert, megatron-bert) has ", reason);
  return bert_types[std::size_t(m.residual_after_norm ? BertType::bert : BertType::megatron)];
}

ordered_json write_bert(const ModelConfig& m, std::string_view type) {
  return {{"architectures", {class_name(m)}},
          {"model_type", type},
          {"num_hidden_layers", m.layers},
          {"hidden_size", m.hidden},
          {"num_attention_heads", m.heads},
          {"intermediate_size", m.ffn_hidden},
          {"max_position_embeddings", m.max_positions},
          {"type_vocab_size", 2},
          {"layer_norm_eps", m.norm_epsilon},
          {"hidden_act", "gelu"},
          {"hidden_dropout_prob", m.hidden_dropout},
          {"attention_probs_dropout_prob", m.attention_dropout},
          {"position_embedding_type", "absolute"}};
}

// Numbers of positions, which old programs stored; what stands beside a words' head that is read alone; and
// of an output of its own the second bias, which transformers keeps and adds nowhere.
bool is_known_bert_table(std::string_view name) {
  return name == "bert.embeddings.position_ids" || name.starts_with("bert.pooler.") ||
         name.starts_with("cls.seq_relationship.") || name == "cls.predictions.bias" ||
         name == "roberta.embeddings.position_ids" || name == "lm_head.bias" ||
         name.starts_with("roberta.pooler.");
}

ModelConfig plain_bert(ModelConfig m) {
  m = plain_gpt(std::move(m));
  if (m.sentence_order) m.token_types = false;
  return m;
}

// Theirs always have two token types; and beside an output of its own two biases, one of which each version
// adds.
std::vector<Theirs> beside_a_bert(const ModelConfig& m) {
  std::vector<Theirs> out;
  if (!m.sentence_order && !m.token_types)
    out.push_back({"bert.embeddings.token_type_embeddings.weight", {2, m.hidden}});
  if (!m.tied_output)
    out.push_back({.name = "cls.predictions.bias", .shape = {m.vocabulary}, .copy_of = "output.bias"});
  return out;
}

}  // namespace weft
