// Types whose attention and MLPs may stand beside each other: GPT-NeoX, GPT-J, Phi, Falcon, Cohere and
// StableLM; and the way to those of layer norms that never do.
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

void read_sizes(ModelConfig& m, HubSettings& s) {
  m.layers = int(s.size("num_hidden_layers", HubSettings::most_layers));
  m.hidden = s.size("hidden_size", HubSettings::widest);
  m.heads = int(s.size("num_attention_heads", HubSettings::most_heads));
}

void read_mlp(ModelConfig& m, HubSettings& s, const char* usual) {
  m.ffn_hidden = s.size("intermediate_size", HubSettings::widest);
  m.max_positions = s.size("max_position_embeddings");
  m.activation = hub_activation(s.word("hidden_act", usual), s, "hidden_act");
  m.norm_epsilon = s.positive("layer_norm_eps", 1e-5);
}

void read_neox(ModelConfig& m, HubSettings& s) {
  read_mlp(m, s, "gelu");
  s.must_be("attention_bias", true);
  m.hidden_dropout = s.fraction("hidden_dropout", 0);
  m.parallel_sublayers =
      s.yes("use_parallel_residual", true) ? ParallelSublayers::own_norms : ParallelSublayers::none;
  (void)s.find("classifier_dropout");
}

void read_phi(ModelConfig& m, HubSettings& s) {
  read_mlp(m, s, "gelu_new");
  m.groups = int(s.size_or("num_key_value_heads", m.heads, HubSettings::most_heads));
  m.hidden_dropout = s.fraction("resid_pdrop", 0);
  m.qk_norm = s.yes("qk_layernorm", false);
  m.logits_bias = true;
}

/// All of them in layers of two kinds: some look through a window and turn, the others do neither.
void read_kinds_of_cohere(ModelConfig& m, HubSettings& s) {
  read_hub_window(m, GptType::cohere2, s);
  if (m.window == 0) m.rotary.skip_layers.assign(std::size_t(m.layers), 1);
  s.must_be("position_embedding_type", "rope_gptj");
  s.must_be("rotary_pct", 1.0);
  for (const char* name : {"use_gated_activation", "use_parallel_block", "use_embedding_sharing"})
    s.must_be(name, true);
  for (const char* name :
       {"layer_switch", "order_of_interleaved_layers", "use_parallel_embedding", "cache_implementation"})
    (void)s.find(name);
}

void read_cohere(ModelConfig& m, GptType type, HubSettings& s) {
  read_mlp(m, s, "silu");
  m.groups = int(s.size_or("num_key_value_heads", m.heads, HubSettings::most_heads));
  m.channels = s.size_or("head_dim", 0, HubSettings::widest / 16);
  m.hidden_dropout = 0;
  m.gated = true;
  m.norm_bias = false;
  m.linear_bias = m.qkv_bias = s.yes("attention_bias", false);
  m.mlp_bias = !m.linear_bias;  // there are none
  m.output_multiplier = s.positive("logit_scale", 0.0625);
  if (type == GptType::cohere)
    m.qk_norm = m.qk_norm_each = s.yes("use_qk_norm", false);
  else
    s.must_be("use_qk_norm", false);
  (void)s.find("model_max_length");
}

void read_stablelm(ModelConfig& m, HubSettings& s) {
  read_mlp(m, s, "silu");
  m.groups = int(s.size_or("num_key_value_heads", 32, HubSettings::most_heads));
  m.hidden_dropout = s.fraction("hidden_dropout", 0);
  m.gated = true;
  m.linear_bias = false;
  m.qkv_bias = s.yes("use_qkv_bias", false);
  m.parallel_sublayers =
      s.yes("use_parallel_residual", false) ? ParallelSublayers::one_norm : ParallelSublayers::none;
  m.qk_norm = m.qk_norm_each = s.yes("qk_layernorm", false);
  s.must_be("rotary_scaling_factor", 1.0);
  (void)s.find("norm_eps");  // of older programs
}

void read_gptj(ModelConfig& m, HubSettings& s) {
  read_hub_n_sizes(m, s);
  m.hidden_dropout = s.fraction("resid_pdrop", 0);
  m.attention_dropout = s.fraction("attn_pdrop", 0);
  for (const char* name : {"scale_attn_weights", "rotary"}) s.must_be(name, true);
  m.qkv_bias = m.project_bias = false;
  m.logits_bias = true;
  const std::int64_t channels = m.hidden / m.heads, turned = s.size_or("rotary_dim", 64, HubSettings::widest);
  if (turned > channels || turned % 2 != 0)
    s.refuse("rotary_dim", text("expected an even number up to the ", channels, " channels of a head"));
  m.positions = Positions::rotary;
  m.rotary.original_positions = m.max_positions;
  m.rotary.percent = percent_that_turns(turned, channels);
  m.rotary.interleaved = true;
}

void read_falcon(ModelConfig& m, HubSettings& s) {
  m.ffn_hidden = s.size_or("ffn_hidden_size", 4 * m.hidden, HubSettings::widest);
  m.max_positions = s.size_or("max_position_embeddings", 2048);
  m.activation = hub_activation(s.word("activation", "gelu"), s, "activation");
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-5);
  m.hidden_dropout = s.fraction("hidden_dropout", 0);
  m.linear_bias = m.qkv_bias = s.yes("bias", false);
  if (s.yes("alibi", false)) m.positions = Positions::alibi;
  m.alibi.scaled = m.positions == Positions::alibi;
  s.must_be("apply_residual_connection_post_layernorm", false);
  const bool grouped = s.yes("new_decoder_architecture", false), one_key = s.yes("multi_query", true);
  const bool beside = s.yes("parallel_attn", true);
  const std::int64_t keys = s.size_or("num_kv_heads", m.heads, HubSettings::most_heads);
  m.groups = grouped ? int(keys) : one_key ? 1 : m.heads;
  if (!grouped && !one_key && keys != m.heads)
    s.refuse("num_kv_heads", "weft can only compute as many as heads without new_decoder_architecture");
  if (grouped && !beside)
    s.refuse("parallel_attn", "weft can only compute true with new_decoder_architecture");
  const std::int64_t norms = s.size_or("num_ln_in_parallel_attn", grouped ? 2 : 1, 2);
  if (norms == 2 && !grouped)
    s.refuse("num_ln_in_parallel_attn", "weft can only compute 1 without new_decoder_architecture");
  m.parallel_sublayers = !beside      ? ParallelSublayers::none
                         : norms == 2 ? ParallelSublayers::own_norms
                                      : ParallelSublayers::one_norm;
}

void add_stablelm(ordered_json& out, const ModelConfig& m) {
  out["num_key_value_heads"] = m.groups;
  out["hidden_dropout"] = m.hidden_dropout;
  out["partial_rotary_factor"] = m.rotary.percent;
  out["use_qkv_bias"] = m.qkv_bias;
  out["use_parallel_residual"] = m.parallel_sublayers != ParallelSublayers::none;
  out["qk_layernorm"] = m.qk_norm;
}

ordered_json gptj_json(const ModelConfig& m) {
  return {{"n_layer", m.layers},
          {"n_embd", m.hidden},
          {"n_head", m.heads},
          {"n_inner", m.ffn_hidden},
          {"n_positions", m.max_positions},
          {"rotary_dim", turned_channels(m)},
          {"layer_norm_epsilon", m.norm_epsilon},
          {"activation_function", activation_word(m)},
          {"resid_pdrop", m.hidden_dropout},
          {"embd_pdrop", m.hidden_dropout},
          {"attn_pdrop", m.attention_dropout}};
}

void add_falcon(ordered_json& out, const ModelConfig& m) {
  const bool one_norm = m.parallel_sublayers == ParallelSublayers::one_norm,
             own = m.parallel_sublayers == ParallelSublayers::own_norms;
  const bool grouped = own || (one_norm && m.groups != 1 && m.groups != m.heads);
  out["ffn_hidden_size"] = m.ffn_hidden;
  out["layer_norm_epsilon"] = m.norm_epsilon;
  out["activation"] = activation_word(m);
  out["hidden_dropout"] = m.hidden_dropout;
  out["bias"] = m.linear_bias;
  out["alibi"] = m.positions == Positions::alibi;
  out["new_decoder_architecture"] = grouped;
  out["multi_query"] = !grouped && m.groups == 1;
  out["parallel_attn"] = one_norm || own;
  out["num_kv_heads"] = grouped ? m.groups : m.heads;
  if (grouped) out["num_ln_in_parallel_attn"] = own ? 2 : 1;
}

void add_neox(ordered_json& out, const ModelConfig& m) {
  out["hidden_dropout"] = m.hidden_dropout;
  out["use_parallel_residual"] = m.parallel_sublayers != ParallelSublayers::none;
  out["attention_bias"] = true;
  out["rotary_pct"] = m.rotary.percent;
  out["rotary_emb_base"] = m.rotary.base;
  out.erase("rope_theta");  // the same in others' words
}

void add_grouped(ordered_json& out, const ModelConfig& m, GptType type) {
  out["num_key_value_heads"] = m.groups;
  if (is_cohere(type)) {
    out["head_dim"] = m.channels;
    out["logit_scale"] = m.output_multiplier;
    out["attention_bias"] = m.linear_bias;
    if (type == GptType::cohere) out["use_qk_norm"] = m.qk_norm;
    return write_hub_window(out, m, type);
  }
  out["partial_rotary_factor"] = m.rotary.percent;
  out["resid_pdrop"] = out["embd_pdrop"] = m.hidden_dropout;
  out["qk_layernorm"] = m.qk_norm;
}

std::string_view no_falcon(const ModelConfig& m) {
  if (m.qkv_bias != m.linear_bias) return "layers as Falcon's, with biases in some places";
  if (turns_a_part(m)) return "layers as Falcon's, with heads of which a part turns";
  if (m.positions == Positions::alibi && (m.alibi.power != 8 || m.embedding_norm))
    return "scores that fall with distances as they are scaled, in another way than Falcon's";
  if (m.parallel_sublayers == ParallelSublayers::none && m.groups != 1 && m.groups != m.heads)
    return "layers as Falcon's that are not beside each other, with grouped heads";
  return "";
}

std::string_view no_gptj(const ModelConfig& m) {
  if (m.qkv_bias || !m.linear_bias) return "biases of logits and of no projection, with others than an MLP's";
  if (m.groups != m.heads) return "biases of logits and of no projection, with grouped heads";
  const RotaryConfig& r = m.rotary;
  if (r.base != 10000 || r.scaling != RotaryScaling::none ||
      r.percent != percent_that_turns(turned_channels(m), m.channels))
    return "biases of logits and of no projection, with other angles than GPT-J's";
  return "";
}

std::string_view no_cohere(const ModelConfig& m) {
  if (m.parallel_sublayers != ParallelSublayers::one_norm)
    return "layer norms without biases, not one for attention and MLP";
  if (!m.gated) return "layer norms without biases, with an MLP that is not gated";
  if ((m.linear_bias || m.qkv_bias) && !biases_attention_alone(m))
    return "layer norms without biases, with others";
  if (turns_a_part(m)) return "layer norms without biases, with heads of which a part turns";
  const bool both = has_window(m) || skips(m);
  if (both && !slides_where_it_turns(m))
    return "layer norms without biases, with layers without a window that turn, or the other way round";
  if (both && m.channels * m.heads != m.hidden)
    return "layer norms without biases, with a window and heads that are not hidden / heads wide";
  return "";
}

std::string_view no_stablelm(const ModelConfig& m) {
  if (m.parallel_sublayers == ParallelSublayers::own_norms)
    return "layer norms that have biases and a gated MLP, with norms of their own beside each other";
  if (m.linear_bias) return "layer norms that have biases and a gated MLP that has some";
  if (m.channels * m.heads != m.hidden)
    return "layer norms that have biases, with heads that are not hidden / heads wide";
  return m.output_multiplier == 1 ? "" : "layer norms that have biases, with an output multiplier";
}

/// Of those that are no Cohere's.
std::string_view no_plain_mlp(const ModelConfig& m, GptType type) {
  if (m.gated) return "layer norms that have biases, with a gated MLP";
  if (m.channels * m.heads != m.hidden && type != GptType::nemotron)
    return "layer norms that have biases, with heads that are not hidden / heads wide";
  if (!m.project_bias && m.linear_bias && type != GptType::gptj)
    return "biases of MLPs without one of the projection, and without biases of logits";
  if (m.output_multiplier != 1) return "layer norms that have biases, with an output multiplier";
  if (type == GptType::gptj) return no_gptj(m);
  if (type == GptType::falcon) return no_falcon(m);
  if (stands_serially(type)) return no_serial(m, type);
  if (type == GptType::phi && !(m.linear_bias && m.qkv_bias)) return "biases of logits without all others";
  if (type == GptType::phi && turns_a_part(m) && turned_channels(m) < 2)
    return "biases of logits, with heads that hardly turn";
  return "";
}

}  // namespace

double percent_that_turns(std::int64_t turned, std::int64_t channels) {
  const double percent = double(turned) / double(channels);
  const bool short_of_it = std::int64_t(double(channels) * percent) < turned;
  return short_of_it ? std::nextafter(percent, 2.0) : percent;
}

void read_beside(ModelConfig& m, GptType type, HubSettings& s) {
  m.parallel_sublayers = ParallelSublayers::one_norm;
  m.tied_output = s.yes("tie_word_embeddings", ways_of(type).tied);
  if (type == GptType::gptj) return read_gptj(m, s);
  if (falls(type)) return read_falling(m, type, s);
  read_sizes(m, s);
  if (stands_serially(type)) return read_serial(m, type, s);
  m.attention_dropout = s.fraction("attention_dropout", 0);
  if (type == GptType::gpt_neox) read_neox(m, s);
  if (type == GptType::phi) read_phi(m, s);
  if (type == GptType::falcon) read_falcon(m, s);
  if (is_cohere(type)) read_cohere(m, type, s);
  if (type == GptType::stablelm) read_stablelm(m, s);
  if (m.positions != Positions::alibi)
    read_hub_rotary(m, type, s);
  else
    for (const char* name : {"rope_theta", "rope_scaling", "rope_parameters"}) (void)s.find(name);
  if (type == GptType::cohere2) read_kinds_of_cohere(m, s);
}

ordered_json beside_json(const ModelConfig& m, GptType type) {
  ordered_json out{{"architectures", {ways_of(type).class_name}},
                   {"model_type", gpt_types[std::size_t(type)]}};
  if (falls(type)) return falling_json(m, type);
  if (type == GptType::gptj) {
    out.update(gptj_json(m));
    return out;
  }
  out.update(ordered_json{{"num_hidden_layers", m.layers},
                          {"hidden_size", m.hidden},
                          {"num_attention_heads", m.heads},
                          {"max_position_embeddings", m.max_positions},
                          {"attention_dropout", m.attention_dropout}});
  if (m.positions == Positions::rotary) write_hub_rotary(out, m.rotary);
  if (type == GptType::falcon) {
    add_falcon(out, m);
    return out;
  }
  out["intermediate_size"] = m.ffn_hidden;
  out["hidden_act"] = activation_word(m);
  if (stands_serially(type)) {
    write_serial(out, m, type);
    return out;
  }
  out["layer_norm_eps"] = m.norm_epsilon;
  if (type == GptType::gpt_neox)
    add_neox(out, m);
  else if (type == GptType::stablelm)
    add_stablelm(out, m);
  else
    add_grouped(out, m, type);
  return out;
}

bool is_beside(const ModelConfig& m) {
  if (m.parallel_sublayers != ParallelSublayers::none || m.logits_bias) return true;
  if (m.positions == Positions::alibi || m.embedding_norm || !m.norm_gain) return true;
  if ((m.norm == NormKind::layer && !m.norm_bias) || (m.linear_bias && !m.project_bias)) return true;
  const bool plain = !m.latent.on && !m.delta.on && !m.hybrid.on() && m.experts.count == 0 &&
                     m.sink == Sink::none && m.norm_places == NormPlaces::before;
  return m.norm == NormKind::layer && m.positions == Positions::rotary && (!m.gated || plain);
}

GptType type_of_beside(const ModelConfig& m) {
  if (!m.norm_gain) return GptType::olmo;
  if (m.logits_bias) return m.project_bias ? GptType::phi : GptType::gptj;
  if (m.positions == Positions::alibi)
    return m.alibi.scaled ? GptType::falcon : m.embedding_norm ? GptType::bloom : GptType::mpt;
  const bool windowed = has_window(m), serial = m.parallel_sublayers == ParallelSublayers::none;
  if (!m.norm_bias) return windowed || skips(m) ? GptType::cohere2 : GptType::cohere;
  if (m.gated) return GptType::stablelm;
  if (windowed) return GptType::starcoder2;
  if (serial && m.activation == Activation::squared_relu) return GptType::nemotron;
  const bool neox = m.parallel_sublayers != ParallelSublayers::one_norm && m.linear_bias && m.qkv_bias &&
                    m.groups == m.heads;
  if (neox) return GptType::gpt_neox;
  const bool own_width = m.channels * m.heads != m.hidden;
  if (serial && (turns_a_part(m) || own_width)) return GptType::nemotron;
  return serial && m.groups != 1 && m.groups != m.heads ? GptType::starcoder2 : GptType::falcon;
}

std::string_view no_beside(const ModelConfig& m) {
  const GptType type = type_of_beside(m);
  const bool serial = m.parallel_sublayers == ParallelSublayers::none;
  const bool fall = m.positions == Positions::alibi;
  if (m.embedding_norm && !fall) return "norms of embeddings, without scores that fall with distances";
  if (m.positions != Positions::rotary && !fall)
    return "layers as GPT-NeoX's, Phi's or Cohere's, without rotary positions";
  if (m.norm != NormKind::layer) return "layers as GPT-NeoX's, Phi's or Cohere's, with RMS norms";
  if (m.latent.on || m.delta.on || m.hybrid.on() || m.experts.count > 0 || m.sink != Sink::none)
    return "layers as GPT-NeoX's, Phi's or Cohere's, of other kinds than attention and an MLP";
  if (m.norm_places != NormPlaces::before)
    return "layers as GPT-NeoX's, Phi's or Cohere's, with norms of what they give";
  if ((has_window(m) && !serial && type != GptType::cohere2) || (skips(m) && type != GptType::cohere2))
    return "layers as GPT-NeoX's, Phi's or Cohere's, with a window or without rotary positions in some";
  if (m.residual_multiplier != 1 || m.embedding_multiplier != 1 || scales_scores(m))
    return "layers as GPT-NeoX's, Phi's or Cohere's, with multipliers of embeddings, scores or what they add";
  const bool by_each = m.qk_norm_each && (type == GptType::cohere || type == GptType::stablelm);
  if (m.qk_norm && !by_each && (type != GptType::phi || m.qk_norm_whole || m.qk_norm_plain))
    return "layers as GPT-NeoX's, Phi's or Cohere's, with norms of queries and keys that Phi has not";
  if (m.parallel_sublayers != ParallelSublayers::one_norm && m.logits_bias)
    return "biases of logits, without one norm for attention and MLP";
  if (turns_a_part(m) && std::int64_t(double(m.channels) * m.rotary.percent) % 2 != 0)
    return "rotary positions on an odd number of channels";
  if (falls(type)) return no_falling(m, type);
  if (type == GptType::olmo) return no_olmo1(m);
  if (type == GptType::stablelm) return no_stablelm(m);
  return is_cohere(type) ? no_cohere(m) : no_plain_mlp(m, type);
}

}  // namespace weft
