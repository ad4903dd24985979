// Types whose scores fall with distances: BLOOM and MPT. Falcon's may, and are read beside its others.
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

/// Some of BLOOM's say it in GPT-2's words, some in others'.
std::int64_t size_of_either(HubSettings& s, const char* name, const char* other, std::int64_t most) {
  const bool here = s.find(name) != nullptr;
  (void)s.find(other);
  return s.size(here ? name : other, most);
}

void read_bloom(ModelConfig& m, HubSettings& s) {
  m.layers = int(size_of_either(s, "n_layer", "num_hidden_layers", HubSettings::most_layers));
  m.hidden = size_of_either(s, "hidden_size", "n_embed", HubSettings::widest);
  m.heads = int(size_of_either(s, "n_head", "num_attention_heads", HubSettings::most_heads));
  m.hidden_dropout = s.fraction("hidden_dropout", 0);
  m.attention_dropout = s.fraction("attention_dropout", 0);
  m.max_positions = s.size_or("seq_length", 2048);
  m.embedding_norm = true;
  s.must_be("apply_residual_connection_post_layernorm", false);
  s.must_be("n_inner", 4 * m.hidden);
  // How its own program rounds and joins what it computes.
  for (const char* name :
       {"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi",
        "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact", "unk_token_id"})
    (void)s.find(name);
}

/// One rate for all that is dropped, and a power of slopes.
void read_attention_of_mpt(ModelConfig& m, HubSettings& outer) {
  const HubSettings::Json* object = outer.find("attn_config");
  if (object == nullptr) return;
  if (!object->is_object()) outer.refuse("attn_config", "expected an object");
  HubSettings s(*object, outer.who() + ": attn_config");
  m.hidden_dropout = m.attention_dropout = s.fraction("attn_pdrop", 0);
  m.alibi.power = double(s.size_or("alibi_bias_max", 8, 1024));
  s.must_be("attn_type", "multihead_attention");
  s.must_be("alibi", true);
  for (const char* name : {"prefix_lm", "qk_ln", "attn_uses_sequence_id"}) s.must_be(name, false);
  m.qkv_limit = read_hub_limit(s);
  s.must_be_absent("softmax_scale");
  for (const char* name : {"attn_impl", "model_type"}) (void)s.find(name);
  if (const auto other = s.unasked(); !other.empty())
    fail(Kind::data, s.who(), ": \"", other.front(), "\" is a setting that weft does not know");
}

void read_mpt(ModelConfig& m, HubSettings& s) {
  m.layers = int(s.size("n_layers", HubSettings::most_layers));
  m.hidden = s.size("d_model", HubSettings::widest);
  m.heads = int(s.size("n_heads", HubSettings::most_heads));
  m.max_positions = s.size_or("max_seq_len", 2048);
  m.activation = Activation::gelu_erf;
  m.hidden_dropout = m.attention_dropout = 0;
  m.norm_bias = m.linear_bias = m.qkv_bias = false;
  read_attention_of_mpt(m, s);
  s.must_be("no_bias", true);
  s.must_be("expansion_ratio", 4);
  s.must_be("embedding_fraction", 1.0);
  s.must_be("norm_type", "low_precision_layernorm");
  s.must_be_absent("logit_scale");
  // transformers has no table of places whatever the first says.
  for (const char* name : {"learned_pos_emb", "resid_pdrop", "emb_pdrop", "init_device", "init_config",
                           "verbose", "tokenizer_name"})
    (void)s.find(name);
}

}  // namespace

void read_falling(ModelConfig& m, GptType type, HubSettings& s) {
  m.positions = Positions::alibi;
  m.parallel_sublayers = ParallelSublayers::none;
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-5);
  type == GptType::bloom ? read_bloom(m, s) : read_mpt(m, s);
  m.ffn_hidden = 4 * m.hidden;
}

ordered_json falling_json(const ModelConfig& m, GptType type) {
  ordered_json out{{"architectures", {ways_of(type).class_name}},
                   {"model_type", gpt_types[std::size_t(type)]},
                   {"layer_norm_epsilon", m.norm_epsilon}};
  if (type == GptType::bloom) {
    out.update(ordered_json{{"n_layer", m.layers},
                            {"hidden_size", m.hidden},
                            {"n_head", m.heads},
                            {"seq_length", m.max_positions},
                            {"hidden_dropout", m.hidden_dropout},
                            {"attention_dropout", m.attention_dropout}});
    return out;
  }
  // transformers takes a whole number alone.
  const bool drops = m.attention_dropout > 0;
  const ordered_json dropout = drops ? ordered_json(m.attention_dropout) : ordered_json(0);
  const ordered_json limit = m.qkv_limit > 0 ? ordered_json(m.qkv_limit) : ordered_json();
  out.update(ordered_json{{"n_layers", m.layers},
                          {"d_model", m.hidden},
                          {"n_heads", m.heads},
                          {"expansion_ratio", 4},
                          {"max_seq_len", m.max_positions},
                          {"no_bias", true},
                          {"learned_pos_emb", false},
                          {"attn_config",
                           {{"attn_type", "multihead_attention"},
                            {"alibi", true},
                            {"alibi_bias_max", std::llround(m.alibi.power)},
                            {"clip_qkv", limit},
                            {"attn_pdrop", dropout}}}});
  return out;
}

std::string_view no_falling(const ModelConfig& m, GptType type) {
  if (m.parallel_sublayers != ParallelSublayers::none)
    return "scores that fall with distances, with attention and MLPs beside each other";
  if (m.gated) return "scores that fall with distances, with a gated MLP";
  if (m.groups != m.heads) return "scores that fall with distances, with grouped heads";
  if (m.channels * m.heads != m.hidden)
    return "scores that fall with distances, with heads that are not hidden / heads wide";
  if (m.ffn_hidden != 4 * m.hidden)
    return "scores that fall with distances, with MLPs that are not four times as wide";
  if (m.output_multiplier != 1) return "scores that fall with distances, with an output multiplier";
  if (type == GptType::bloom) {
    if (!m.norm_bias || !m.linear_bias || !m.qkv_bias || !m.project_bias)
      return "norms of embeddings, without biases";
    if (m.activation != Activation::gelu)
      return "norms of embeddings, with another activation than gelu's "
             "tanh form";
    return m.alibi.power == 8 ? "" : "norms of embeddings, with other slopes than BLOOM's";
  }
  if (m.norm_bias || m.linear_bias || m.qkv_bias)
    return "scores that fall with distances, with biases and without norms of embeddings";
  if (m.activation != Activation::gelu_erf)
    return "scores that fall with distances, without biases, with another activation than gelu";
  if (m.alibi.power != std::round(m.alibi.power) || m.alibi.power > 1024)
    return "scores that fall with distances, by a power that is no whole number";
  return m.hidden_dropout == m.attention_dropout
             ? ""
             : "scores that fall with distances, with another dropout of scores than of what is added";
}

}  // namespace weft
