// State spaces in the words of Mamba 2, and beside attention in those of Bamba and Granite 4: a layer there
// is two of ours, each of one thing.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"
#include "weft/model/layer_parts.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

bool all_states(const ModelConfig& m) { return m.hybrid.layers.find_first_not_of('M') == std::string::npos; }

/// Some layer is one.
bool has_state(const ModelConfig& m) { return parts_in_all(m, LayerPart::state) > 0; }

/// What mixes tokens, then an MLP or experts, the same in all.
bool in_pairs(const ModelConfig& m) {
  const std::string& all = m.hybrid.layers;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % 2 == 0 ? all[i] != 'M' && all[i] != '*' : (all[i] != '-' && all[i] != 'E') || all[i] != all[1])
      return false;
  return all.size() % 2 == 0;
}

std::string pairs(const std::string& mixers, char behind) {
  std::string out;
  for (const char mixer : mixers) (out += mixer) += behind;
  return out;
}

bool attends(const ModelConfig& m, int pair) { return m.hybrid.layers[2 * std::size_t(pair)] == '*'; }

/// Of two names the first is Mamba 2's, the second the others'.
StateConfig read_state(const ModelConfig& m, bool plain, HubSettings& s) {
  const std::int64_t wide = s.size_or(plain ? "expand" : "mamba_expand", 2, 1024) * m.hidden;
  StateConfig state{
      .heads = int(s.size_or(plain ? "num_heads" : "mamba_n_heads", 128, HubSettings::most_heads)),
      .groups = int(s.size_or(plain ? "n_groups" : "mamba_n_groups", plain ? 8 : 1, HubSettings::most_heads)),
      .channels = s.size_or(plain ? "state_size" : "mamba_d_state", plain ? 128 : 256, most_delta_channels),
      .taps = int(s.size_or(plain ? "conv_kernel" : "mamba_d_conv", 4, most_taps)),
      .norm_epsilon = m.norm_epsilon};
  const char* name = plain ? "head_dim" : "mamba_d_head";
  const HubSettings::Json* own = s.find(name);
  if (plain || (own != nullptr && *own != "auto"))
    state.head_channels = s.size_or(name, 64, HubSettings::widest / 16);
  else
    state.head_channels = wide / state.heads;
  if (state.heads * state.head_channels != wide)
    s.refuse(name, text("expected ", state.heads, " heads to be ", wide, " channels wide together"));
  for (const char* no : {"use_bias", "mamba_proj_bias"}) s.must_be(no, false);
  s.must_be(plain ? "use_conv_bias" : "mamba_conv_bias", true);
  check_hub_times(s);
  return state;
}

/// Settings of training, of programs that run models, and of initial weights.
void pass_over(HubSettings& s) {
  for (const char* name : {"chunk_size", "mamba_chunk_size", "residual_in_fp32", "rescale_prenorm_residual",
                           "time_step_rank", "time_step_min", "time_step_max", "time_step_floor",
                           "num_logits_to_keep", "z_loss_coefficient", "rms_norm", "norm_before_gate",
                           "router_aux_loss_coef", "output_router_logits", "init_method", "attn_rotary_emb"})
    (void)s.find(name);
}

void read_mamba2(ModelConfig& m, HubSettings& s) {
  m.layers = int(s.size("num_hidden_layers", HubSettings::most_layers));
  m.hybrid.layers.assign(std::size_t(m.layers), 'M');
  m.heads = 1;  // of attention, which no layer is
  m.max_positions = s.size_or("max_position_embeddings", 8192);
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-5);
  s.must_be("hidden_act", "silu");
}

std::string read_bamba_layers(int layers, HubSettings& s) {
  std::string mixers(std::size_t(layers), 'M');
  const HubSettings::Json* list = s.find("attn_layer_indices");
  if (list == nullptr) return mixers;
  constexpr std::string_view expected = "expected a list of layers";
  if (!list->is_array()) s.refuse("attn_layer_indices", expected);
  for (const HubSettings::Json& one : *list) {
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() >= std::uint64_t(layers))
      s.refuse("attn_layer_indices", expected);
    mixers[one.get<std::size_t>()] = '*';
  }
  return mixers;
}

void read_bamba(ModelConfig& m, int layers, HubSettings& s) {
  m.hybrid.layers = pairs(read_bamba_layers(layers, s), '-');
  m.norm_epsilon = s.positive("rms_norm_eps", 1e-5);
  s.must_be("mlp_bias", false);
  read_hub_rotary(m, GptType::bamba, s);
}

std::string read_granite_layers(int layers, HubSettings& s) {
  for (const char* name : {"layer_types", "layers_block_type"}) {
    std::string mixers = read_hub_layer_words(name, s);
    if (mixers.empty()) continue;
    if (std::ssize(mixers) != layers || mixers.find_first_not_of("M*") != std::string::npos)
      s.refuse(name, text("expected ", layers, " words, linear_attention or full_attention"));
    return mixers;
  }
  return std::string(std::size_t(layers), 'M');
}

void read_granite_hybrid(ModelConfig& m, int layers, HubSettings& s) {
  const std::string mixers = read_granite_layers(layers, s);
  m.norm_epsilon = s.positive("rms_norm_eps", 1e-6);
  const std::int64_t shared = s.size_or("shared_intermediate_size", 1024, HubSettings::widest);
  const auto experts = int(s.whole("num_local_experts", 8, 1 << 16));
  m.hybrid.layers = pairs(mixers, experts > 0 ? 'E' : '-');
  if (experts > 0) {
    m.experts.count = experts;
    m.experts.ffn_hidden = m.ffn_hidden;
    m.experts.shared_hidden = shared;
    m.experts.router.chosen = int(s.size_or("num_experts_per_tok", 2, experts));
  } else {
    m.ffn_hidden = shared;
    (void)s.find("num_experts_per_tok");
  }
  s.must_be("normalization_function", "rmsnorm");
  const std::string kind = s.word("position_embedding_type", "nope");
  if (kind != "nope" && kind != "rope") s.refuse("position_embedding_type", "weft knows rope and nope");
  if (kind == "rope") return read_hub_rotary(m, GptType::granitemoehybrid, s);
  for (const char* name : {"rope_theta", "rope_scaling", "rope_parameters"}) (void)s.find(name);
}

void write_state(ordered_json& out, const ModelConfig& m, bool plain) {
  // Of no layer, but theirs must fit together all the same.
  const StateConfig none{.heads = 1, .groups = 1, .head_channels = 2 * m.hidden};
  const StateConfig& state = has_state(m) ? m.state : none;
  out[plain ? "expand" : "mamba_expand"] = state.heads * state.head_channels / m.hidden;
  out[plain ? "num_heads" : "mamba_n_heads"] = state.heads;
  out[plain ? "head_dim" : "mamba_d_head"] = state.head_channels;
  out[plain ? "n_groups" : "mamba_n_groups"] = state.groups;
  out[plain ? "state_size" : "mamba_d_state"] = state.channels;
  out[plain ? "conv_kernel" : "mamba_d_conv"] = state.taps;
  out[plain ? "use_conv_bias" : "mamba_conv_bias"] = true;
  out[plain ? "use_bias" : "mamba_proj_bias"] = false;
}

void write_granite_hybrid(ordered_json& out, const ModelConfig& m) {
  const bool mixed = m.experts.count > 0;
  for (int pair = 0; pair < m.layers / 2; ++pair)
    out["layer_types"].push_back(attends(m, pair) ? "attention" : "mamba");
  out["intermediate_size"] = mixed ? m.experts.ffn_hidden : m.ffn_hidden;
  out["shared_intermediate_size"] = mixed ? m.experts.shared_hidden : m.ffn_hidden;
  out["num_local_experts"] = m.experts.count;
  if (mixed) out["num_experts_per_tok"] = m.experts.router.chosen;
  out["position_embedding_type"] = m.positions == Positions::rotary ? ordered_json("rope") : ordered_json();
  if (m.positions == Positions::rotary) write_hub_rotary(out, m.rotary);
}

void write_bamba(ordered_json& out, const ModelConfig& m) {
  out["attn_layer_indices"] = ordered_json::array();
  for (int pair = 0; pair < m.layers / 2; ++pair)
    if (attends(m, pair)) out["attn_layer_indices"].push_back(pair);
  out["mlp_bias"] = false;
  out["partial_rotary_factor"] = m.rotary.percent;
  write_hub_rotary(out, m.rotary);
}

std::string_view no_pair(const ModelConfig& m) {
  const RouterConfig& r = m.experts.router;
  if (m.channels * m.heads != m.hidden)
    return "state spaces beside gated MLPs, with heads that are not hidden / heads wide";
  if (m.positions != Positions::rotary && m.positions != Positions::none)
    return "state spaces beside gated MLPs, with learned positions";
  if (type_of_states(m) == GptType::bamba) return "";
  if (turns_a_part(m))
    return "state spaces beside gated MLPs, with heads of which another part turns than half";
  if (m.experts.count == 0) return "";
  if (r.score != RouterScore::softmax || r.softmax_first || r.groups > 0 || r.expert_bias || r.scaling != 1)
    return "state spaces beside experts whose weights are no softmax over the chosen";
  if (m.experts.shared_hidden == 0 || m.experts.shared_gate || m.experts.latent > 0)
    return "state spaces beside experts, without a shared one or with another gate";
  return "";
}

}  // namespace

void read_states(ModelConfig& m, GptType type, HubSettings& s) {
  const bool plain = type == GptType::mamba2;
  m.hidden = s.size("hidden_size", HubSettings::widest);
  m.positions = Positions::none;
  m.norm = NormKind::rms;
  m.gated = true;
  m.activation = Activation::silu;
  m.linear_bias = m.qkv_bias = false;
  m.hidden_dropout = m.attention_dropout = 0;
  m.tied_output = s.yes("tie_word_embeddings", false);
  if (plain) {
    read_mamba2(m, s);
  } else {
    const auto layers = int(s.size("num_hidden_layers", HubSettings::most_layers / 2));
    m.layers = 2 * layers;
    m.heads = int(s.size("num_attention_heads", HubSettings::most_heads));
    m.groups = int(s.size_or("num_key_value_heads", m.heads, HubSettings::most_heads));
    m.ffn_hidden = s.size("intermediate_size", HubSettings::widest);
    m.max_positions = s.size("max_position_embeddings");
    m.attention_dropout = s.fraction("attention_dropout", 0);
    m.activation = hub_activation(s.word("hidden_act", "silu"), s, "hidden_act");
    s.must_be("attention_bias", false);
    if (type == GptType::bamba) read_bamba(m, layers, s);
    if (type == GptType::granitemoehybrid) read_granite_hybrid(m, layers, s);
    if (type == GptType::granitemoehybrid) read_granite(m, s);
  }
  const StateConfig state = read_state(m, plain, s);
  if (has_state(m)) m.state = state;
  pass_over(s);
}

ordered_json states_json(const ModelConfig& m, GptType type) {
  const bool plain = type == GptType::mamba2;
  ordered_json out{{"architectures", {ways_of(type).class_name}},
                   {"model_type", gpt_types[std::size_t(type)]},
                   {"num_hidden_layers", plain ? m.layers : m.layers / 2},
                   {"hidden_size", m.hidden},
                   {"hidden_act", plain ? ordered_json("silu") : activation_word(m)}};
  write_state(out, m, plain);
  out[plain ? "layer_norm_epsilon" : "rms_norm_eps"] = m.norm_epsilon;
  if (plain) return out;
  out["num_attention_heads"] = m.heads;
  out["num_key_value_heads"] = m.groups;
  out["intermediate_size"] = m.ffn_hidden;
  out["max_position_embeddings"] = std::max(m.max_positions, m.sequence);
  out["attention_dropout"] = m.attention_dropout;
  out["attention_bias"] = false;
  if (type == GptType::bamba) {
    write_bamba(out, m);
  } else {
    write_granite_hybrid(out, m);
    write_hub_norms(out, m, type);
  }
  return out;
}

bool is_states(const ModelConfig& m) {
  if (!m.hybrid.on()) return false;
  if (!all_states(m)) return in_pairs(m) && m.gated;
  return m.norm == NormKind::rms && (no_states(m).empty() || !no_nemotron_h(m).empty());
}

GptType type_of_states(const ModelConfig& m) {
  if (all_states(m)) return GptType::mamba2;
  const bool half = m.positions == Positions::rotary && m.rotary.percent == 0.5;
  return half && m.experts.count == 0 && !has_multipliers(m) ? GptType::bamba : GptType::granitemoehybrid;
}

std::string_view no_states(const ModelConfig& m) {
  if (m.norm != NormKind::rms) return "state spaces beside gated MLPs, with a layer norm";
  if (m.norm_places != NormPlaces::before) return "layers of one thing each, with norms of what they give";
  if (has_state(m) && m.state.norm_epsilon != m.norm_epsilon)
    return "state spaces whose norms have another epsilon than the others";
  if (has_state(m) && m.state.heads * m.state.head_channels % m.hidden != 0)
    return "state spaces whose heads are together no multiple as wide as the model";
  if (m.ahead.depths > 0) return "state spaces, with further tokens and a gated MLP or a tied output";
  if (m.latent.on || m.qk_norm || m.linear_bias || m.qkv_bias || m.sink != Sink::none || has_window(m) ||
      skips(m))
    return "state spaces beside gated MLPs, with other attention than Llama's";
  if (!all_states(m)) return no_pair(m);
  return has_multipliers(m) ? "state spaces alone, with multipliers" : "";
}

}  // namespace weft
