// Layers that are one thing each, in the words of Nemotron-H: reading.
#include <algorithm>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

constexpr std::string_view letters = "M*-E";
constexpr std::int64_t most_experts = 1 << 16;
/// By which what guesses a further token begins.
constexpr const char* first_of_further = "mtp.layers.0.eh_proj.weight";

/// transformers has renamed two of its words.
char letter_of(const HubSettings::Json& word) {
  if (word == "linear_attention" || word == "mamba") return 'M';
  if (word == "full_attention" || word == "attention") return '*';
  if (word == "mlp") return '-';
  return word == "moe" ? 'E' : ' ';
}

/// A list of words, or letters, which older files have. Where both are there they say the same.
std::string read_layers(std::initializer_list<const char*> lists, const char* pattern, HubSettings& s) {
  std::string out;
  for (const char* name : lists) {
    const std::string found = read_hub_layer_words(name, s);
    if (!out.empty() && !found.empty() && found != out)
      s.refuse(name, text("and ", *lists.begin(), " says ", out));
    if (out.empty()) out = found;
  }
  if (out.empty()) out = s.word(pattern, "");
  if (out.find_first_not_of(letters) != std::string::npos) s.refuse(pattern, "weft knows M, *, - and E");
  s.must_be(pattern, out);
  return out;
}

/// Names that transformers still takes from older files.
const char* name_of(const char* now, const char* then, HubSettings& s) {
  const bool old = s.find(then) != nullptr;
  (void)s.find(now);
  return old ? then : now;
}

/// Infinity is no number of JSON's: it stands there as an object, or is a number that no time comes near.
bool is_endless(const HubSettings::Json& limit) {
  return limit.is_number() ? limit.get<double>() >= 1e20
                           : limit == HubSettings::Json{{"__float__", "Infinity"}};
}

StateConfig read_state(double epsilon, HubSettings& s) {
  return {.heads = int(s.size("mamba_num_heads", HubSettings::most_heads)),
          .groups = int(s.size_or(name_of("n_groups", "mamba_n_groups", s), 8, HubSettings::most_heads)),
          .channels = s.size_or("ssm_state_size", 128, most_delta_channels),
          .head_channels = s.size("mamba_head_dim", HubSettings::widest / 16),
          .taps = int(s.size_or(name_of("conv_kernel", "mamba_d_conv", s), 4, most_taps)),
          .norm_epsilon = epsilon};
}

// The file's router adds up to one whenever it is told so; ours, unless it chooses only one.
ExpertsConfig read_experts(HubSettings& s) {
  ExpertsConfig x;
  x.count = int(s.size("n_routed_experts", most_experts));
  x.ffn_hidden = s.size("moe_intermediate_size", HubSettings::widest);
  x.shared_hidden = s.size("moe_shared_expert_intermediate_size", HubSettings::widest);
  x.latent = s.size_or("moe_latent_size", 0, HubSettings::widest);
  s.must_be("n_shared_experts", 1);
  RouterConfig& router = x.router;
  router.chosen = int(s.size("num_experts_per_tok", x.count));
  router.score = RouterScore::sigmoid;
  router.expert_bias = true;
  router.scaling = s.positive("routed_scaling_factor", 1);
  check_hub_weights(router, s);
  read_hub_groups(router, 2, s);
  return x;
}

/// What guesses further tokens, where it is what weft has for it.
void read_further(ModelConfig& m, HubSettings& s) {
  const int depths = int(s.whole("num_nextn_predict_layers", 0, most_depths));
  std::string ahead = read_layers({"mtp_layers_block_type"}, "mtp_hybrid_override_pattern", s);
  if (ahead.empty()) ahead = "*E";
  // One of each, and an MLP or experts.
  const auto has = [&](char letter) { return ahead.find(letter) != std::string::npos; };
  bool can = depths > 0 && !(has('-') && has('E'));
  for (std::size_t i = 0; i < ahead.size(); ++i) can &= ahead.find(ahead[i], i + 1) == std::string::npos;
  const bool some = !has('E') || m.hybrid.layers.find('E') != std::string::npos;
  if (!can || !some) return;
  m.hybrid.ahead = ahead;
  m.ahead.depths = depths;
}

// Positions are no setting: there are none, whatever is said of how they turn.
void pass_over(HubSettings& s) {
  for (const char* name : {"rope_theta",
                           "rope_scaling",
                           "rope_parameters",
                           "partial_rotary_factor",
                           "expand",
                           "mamba_expand",
                           "chunk_size",
                           "mamba_chunk_size",
                           "hidden_dropout",
                           "residual_in_fp32",
                           "rescale_prenorm_residual",
                           "num_logits_to_keep",
                           "use_mamba_kernels",
                           "mamba_ssm_cache_dtype",
                           "time_step_min",
                           "mamba_dt_min",
                           "time_step_max",
                           "mamba_dt_max",
                           "time_step_floor",
                           "mamba_dt_init_floor",
                           "moe_shared_expert_overlap",
                           "output_router_logits",
                           "time_step_rank"})
    (void)s.find(name);
  // Of layers that this model has none of.
  for (const char* name :
       {"mamba_num_heads", "n_groups", "mamba_n_groups", "ssm_state_size", "mamba_head_dim", "conv_kernel",
        "mamba_d_conv", "n_routed_experts", "n_shared_experts", "moe_intermediate_size",
        "moe_shared_expert_intermediate_size", "moe_latent_size", "num_experts_per_tok",
        "routed_scaling_factor", "norm_topk_prob", "n_group", "topk_group"})
    (void)s.find(name);
}

void refuse_others(const ModelConfig& m, HubSettings& s) {
  s.must_be("num_hidden_layers", m.layers);
  for (const char* name : {"norm_eps", "rms_norm_eps"}) s.must_be(name, m.norm_epsilon);
  for (const char* name :
       {"use_bias", "mamba_proj_bias", "attention_bias", "mlp_bias", "tie_word_embeddings"})
    s.must_be(name, false);
  s.must_be(name_of("use_conv_bias", "mamba_conv_bias", s), true);
  s.must_be("mamba_hidden_act", "silu");
  s.must_be_absent("sliding_window");
  check_hub_times(s);
}

}  // namespace

std::string read_hub_layer_words(const char* name, HubSettings& s) {
  const HubSettings::Json* list = s.find(name);
  if (list == nullptr) return "";
  constexpr std::string_view known = "weft knows linear_attention, full_attention, mlp and moe";
  if (!list->is_array()) s.refuse(name, "expected a list of words");
  std::string out;
  for (const HubSettings::Json& word : *list) {
    out += letter_of(word);
    if (out.back() == ' ') s.refuse(name, known);
  }
  return out;
}

void check_hub_times(HubSettings& s) {
  const char* name = name_of("time_step_limit", "mamba_dt_limit", s);
  const HubSettings::Json* limit = s.find(name);
  if (limit == nullptr) return;
  if (!limit->is_array() || limit->size() != 2 || (*limit)[0] != 0 || !is_endless((*limit)[1]))
    s.refuse(name, "weft can only compute times that have no limit, from 0 to Infinity");
}

void read_nemotron_h(ModelConfig& m, HubSettings& s) {
  constexpr const char* pattern = "hybrid_override_pattern";
  m.hybrid.layers = read_layers({"layers_block_type", "layer_types"}, pattern, s);
  if (m.hybrid.layers.empty()) s.refuse(pattern, "expected a letter a layer");
  m.layers = int(m.hybrid.layers.size());
  m.hidden = s.size("hidden_size", HubSettings::widest);
  m.heads = int(s.size("num_attention_heads", HubSettings::most_heads));
  m.groups = int(s.size("num_key_value_heads", HubSettings::most_heads));
  const std::int64_t usual = s.size_or("attention_head_dim", 128, HubSettings::widest / 16);
  m.channels = s.size_or("head_dim", usual, HubSettings::widest / 16);
  m.ffn_hidden = s.size_or("intermediate_size", 21504, HubSettings::widest);
  m.max_positions = s.size_or("max_position_embeddings", 4096);
  m.positions = Positions::none;
  m.norm = NormKind::rms;
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-5);
  m.activation = hub_activation(s.word("mlp_hidden_act", "relu2"), s, "mlp_hidden_act");
  m.linear_bias = m.qkv_bias = m.tied_output = false;
  m.hidden_dropout = 0;
  m.attention_dropout = s.fraction("attention_dropout", 0);
  refuse_others(m, s);
  read_further(m, s);
  const std::string all = m.hybrid.layers + m.hybrid.ahead;
  if (all.find('M') != std::string::npos) m.state = read_state(m.norm_epsilon, s);
  if (all.find('E') != std::string::npos) m.experts = read_experts(s);
  pass_over(s);
}

// transformers writes models without them, whatever config.json says.
void settle_gpt(ModelConfig& m, const IsStored& stored) {
  if (m.ahead.depths == 0) return;
  const std::string first =
      m.hybrid.on() ? first_of_further : text("model.layers.", m.layers, ".eh_proj.weight");
  if (stored(first)) return;
  m.ahead.depths = 0;
  m.hybrid.ahead.clear();
}

}  // namespace weft
