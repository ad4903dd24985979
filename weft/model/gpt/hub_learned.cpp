// Types whose places have a table: GPT-2, GPT-BigCode, GPT-Neo and OPT.
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

/// In the words of GPT-2, which GPT-BigCode says too.
void read_as_gpt2(ModelConfig& m, HubSettings& s) {
  read_hub_n_sizes(m, s);
  m.hidden_dropout = s.fraction("resid_pdrop", 0.1);
  m.attention_dropout = s.fraction("attn_pdrop", 0.1);
  s.must_be("scale_attn_weights", true);
  s.must_be("add_cross_attention", false);
}

void read_bigcode(ModelConfig& m, HubSettings& s) {
  read_as_gpt2(m, s);
  m.groups = s.yes("multi_query", true) ? 1 : m.heads;
  // How softmax is rounded, and what older programs that serve models read.
  for (const char* name : {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner",
                           "validate_runner_input", "pre_allocate_kv_cache", "max_sequence_length",
                           "max_batch_size", "pad_key_length"})
    (void)s.find(name);
}

/// "attention_types" is [[["global", "local"], 12]]: a pattern and how often it comes.
std::vector<int> read_patterns(ModelConfig& m, HubSettings& s) {
  constexpr std::string_view expected =
      "expected lists of global and local, and how often each comes: [[[\"global\", \"local\"], 12]]";
  const HubSettings::Json usual = HubSettings::Json::parse(R"([[["global", "local"], 12]])");
  const HubSettings::Json* said = s.find("attention_types");
  const HubSettings::Json& patterns = said != nullptr ? *said : usual;
  std::vector<int> out;
  const auto add = [&](const HubSettings::Json& word) {
    if (word != "global" && word != "local") s.refuse("attention_types", expected);
    out.push_back(word == "local");
  };
  if (!patterns.is_array()) s.refuse("attention_types", expected);
  for (const HubSettings::Json& pattern : patterns) {
    if (!pattern.is_array() || pattern.size() != 2 || !pattern[0].is_array() ||
        !pattern[1].is_number_unsigned() || pattern[1].get<std::uint64_t>() > HubSettings::most_layers)
      s.refuse("attention_types", expected);
    for (std::uint64_t i = 0; i < pattern[1].get<std::uint64_t>() && std::ssize(out) <= m.layers; ++i)
      for (const HubSettings::Json& word : pattern[0]) add(word);
  }
  if (std::ssize(out) != m.layers) s.refuse("attention_types", text("expected ", m.layers, " layers"));
  return out;
}

/// What lists it once more is made of the patterns.
void read_neo(ModelConfig& m, HubSettings& s) {
  m.layers = int(s.size("num_layers", HubSettings::most_layers));
  m.hidden = s.size("hidden_size", HubSettings::widest);
  m.heads = int(s.size("num_heads", HubSettings::most_heads));
  m.ffn_hidden = s.size_or("intermediate_size", 4 * m.hidden, HubSettings::widest);
  m.max_positions = s.size_or("max_position_embeddings", 2048);
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-5);
  m.activation = hub_activation(s.word("activation_function", "gelu_new"), s, "activation_function");
  m.hidden_dropout = s.fraction("resid_dropout", 0);
  m.attention_dropout = s.fraction("attention_dropout", 0);
  m.qkv_bias = false;
  m.softmax_scale = 1;
  m.window_layers = read_patterns(m, s);
  m.window = s.size_or("window_size", 256);
  if (!has_window(m)) m.window = 0;
  for (const char* name : {"attention_layers", "embed_dropout", "classifier_dropout"}) (void)s.find(name);
}

void read_opt(ModelConfig& m, HubSettings& s) {
  m.layers = int(s.size("num_hidden_layers", HubSettings::most_layers));
  m.hidden = s.size("hidden_size", HubSettings::widest);
  m.heads = int(s.size("num_attention_heads", HubSettings::most_heads));
  m.ffn_hidden = s.size_or("ffn_dim", 3072, HubSettings::widest);
  m.max_positions = s.size_or("max_position_embeddings", 2048);
  m.activation = hub_activation(s.word("activation_function", "relu"), s, "activation_function");
  m.hidden_dropout = s.fraction("dropout", 0.1);
  m.attention_dropout = s.fraction("attention_dropout", 0);
  m.linear_bias = m.qkv_bias = s.yes("enable_bias", true);
  s.must_be("do_layer_norm_before", true);
  s.must_be("_remove_final_layer_norm", false);
  s.must_be("layer_norm_elementwise_affine", true);
  s.must_be("word_embed_proj_dim", m.hidden);
  s.must_be("layerdrop", 0.0);
  for (const char* name : {"activation_dropout", "init_std"}) (void)s.find(name);
}

ordered_json as_gpt2(const ModelConfig& m, GptType type) {
  ordered_json out{{"architectures", {ways_of(type).class_name}},
                   {"model_type", gpt_types[std::size_t(type)]},
                   {"n_layer", m.layers},
                   {"n_embd", m.hidden},
                   {"n_head", m.heads},
                   {"n_inner", m.ffn_hidden},
                   {"n_positions", m.max_positions},
                   {"layer_norm_epsilon", m.norm_epsilon},
                   {"activation_function", activation_word(m)},
                   {"resid_pdrop", m.hidden_dropout},
                   {"embd_pdrop", m.hidden_dropout},
                   {"attn_pdrop", m.attention_dropout},
                   {"scale_attn_weights", true}};
  if (type == GptType::gpt_bigcode)
    out["multi_query"] = m.groups == 1;
  else
    out["n_ctx"] = m.max_positions;
  return out;
}

ordered_json neo_json(const ModelConfig& m) {
  ordered_json out{{"architectures", {ways_of(GptType::gpt_neo).class_name}},
                   {"model_type", "gpt_neo"},
                   {"num_layers", m.layers},
                   {"hidden_size", m.hidden},
                   {"num_heads", m.heads},
                   {"intermediate_size", m.ffn_hidden},
                   {"max_position_embeddings", m.max_positions},
                   {"layer_norm_epsilon", m.norm_epsilon},
                   {"activation_function", activation_word(m)},
                   {"resid_dropout", m.hidden_dropout},
                   {"embed_dropout", m.hidden_dropout},
                   {"attention_dropout", m.attention_dropout}};
  if (has_window(m)) out["window_size"] = m.window;
  ordered_json words = ordered_json::array();
  for (int layer = 0; layer < m.layers; ++layer) {
    const bool here = has_window(m) && (m.window_layers.empty() || m.window_layers[std::size_t(layer)] != 0);
    words.push_back(here ? "local" : "global");
  }
  out["attention_types"] = ordered_json::array({ordered_json::array({std::move(words), 1})});
  return out;
}

ordered_json opt_json(const ModelConfig& m) {
  return {{"architectures", {ways_of(GptType::opt).class_name}},
          {"model_type", "opt"},
          {"num_hidden_layers", m.layers},
          {"hidden_size", m.hidden},
          {"word_embed_proj_dim", m.hidden},
          {"num_attention_heads", m.heads},
          {"ffn_dim", m.ffn_hidden},
          {"max_position_embeddings", m.max_positions},
          {"activation_function", activation_word(m)},
          {"dropout", m.hidden_dropout},
          {"attention_dropout", m.attention_dropout},
          {"enable_bias", m.linear_bias}};
}

std::string_view no_neo(const ModelConfig& m) {
  if (m.qkv_bias || !m.linear_bias)
    return "learned positions with a window or scores of another scale, with biases in other places than "
           "GPT-Neo's";
  if (m.groups != m.heads) return "learned positions with a window, with grouped heads";
  if (m.softmax_scale != 1) return "learned positions with a window, with scores that are scaled";
  return "";
}

std::string_view no_opt(const ModelConfig& m) {
  if (m.groups != m.heads) return "learned positions without biases, with grouped heads";
  if (m.norm_epsilon != 1e-5) return "learned positions without biases, with another epsilon than 1e-5";
  return "";
}

}  // namespace

void read_learned(ModelConfig& m, GptType type, HubSettings& s) {
  m.tied_output = s.yes("tie_word_embeddings", true);
  if (type == GptType::opt) return read_opt(m, s);
  if (type == GptType::gpt_neo) return read_neo(m, s);
  if (type == GptType::gpt_bigcode) return read_bigcode(m, s);
  read_as_gpt2(m, s);
  s.must_be("scale_attn_by_inverse_layer_idx", false);
}

ordered_json learned_json(const ModelConfig& m, GptType type) {
  if (type == GptType::opt) return opt_json(m);
  return type == GptType::gpt_neo ? neo_json(m) : as_gpt2(m, type);
}

GptType type_of_learned(const ModelConfig& m) {
  if (has_window(m) || scales_scores(m) || (!m.qkv_bias && m.linear_bias)) return GptType::gpt_neo;
  if (!m.linear_bias && !m.qkv_bias) return GptType::opt;
  return m.groups == 1 && m.heads > 1 ? GptType::gpt_bigcode : GptType::gpt2;
}

std::string_view no_learned(const ModelConfig& m) {
  const GptType type = type_of_learned(m);
  if (m.embedding_multiplier != 1 || m.residual_multiplier != 1 || m.output_multiplier != 1)
    return "multipliers without rotary positions";
  if (m.norm != NormKind::layer) return "learned positions with an RMS norm";
  if (m.experts.count > 0) return "learned positions with experts";
  if (m.latent.on) return "learned positions with latent attention";
  if (m.gated) return "learned positions with a gated MLP";
  if (m.qk_norm) return "learned positions with query and key norms";
  if (m.channels * m.heads != m.hidden)
    return "learned positions with heads that are not hidden / heads wide";
  if (type == GptType::gpt_neo) return no_neo(m);
  if (type == GptType::opt) return no_opt(m);
  if (!m.linear_bias) return "learned positions with biases of queries, keys and values alone";
  if (m.groups != 1 && m.groups != m.heads) return "learned positions with grouped heads";
  return "";
}

}  // namespace weft
