#include "weft/exchange/megatron/arguments.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/model/kinds.h"

namespace weft::exchange::megatron {
namespace {

using torch::Value;

[[noreturn]] void refuse(const Arguments& args, std::string_view name, const std::string& why) {
  fail(Kind::data, args.who(), ": ", name, ' ', why);
}

/// What changes what a model computes and weft does not read from here; each is out of use as it is by
/// default.
constexpr std::string_view unread[] = {"mtp_use_repeated_layer",
                                       "heterogeneous_layers_config_path",
                                       "heterogeneous_layers_config_encoded_json",
                                       "hybrid_layer_pattern",
                                       "hybrid_override_pattern",
                                       "is_hybrid_model",
                                       "linear_attention_freq",
                                       "experimental_attention_variant",
                                       "qk_l2_norm",
                                       "no_rope_freq",
                                       "attention_output_gate",
                                       "use_mup",
                                       "moe_latent_size"};

bool says_nothing(const Value& value) {
  if (const bool* flag = value.boolean()) return !*flag;
  if (const std::int64_t* number = value.integer()) return *number == 0;
  return value.is_none();
}

void must_not_say(const Arguments& args, std::string_view name) {
  const Value* value = args.find(name);
  if (value != nullptr && !says_nothing(*value))
    refuse(args, name, "is in use, which weft does not read yet");
}

/// A number or a list of 0 and 1, one a layer.
void by_layers(const Arguments& args, std::string_view name, int& every, std::vector<int>& layers) {
  const Value* value = args.find(name);
  if (value == nullptr) return;
  if (const std::int64_t* n = value->integer()) {
    every = int(*n);
    return;
  }
  const auto* list = value->list();
  if (list == nullptr)
    refuse(args, name, "is " + std::string(value->kind()) + ", expected a number or a list");
  for (const Value& one : *list) {
    const std::int64_t* n = one.integer();
    if (n == nullptr || (*n != 0 && *n != 1)) refuse(args, name, "is no list of 0 and 1");
    layers.push_back(int(*n));
  }
}

/// Of what a run plans one by one.
int at_most(const Arguments& a, std::string_view name, int most, int otherwise = 0) {
  const std::int64_t number = a.whole(name, otherwise);
  if (number > most) refuse(a, name, text("is ", number, ", expected ", most, " at most"));
  return int(number);
}

void sizes(const Arguments& a, ModelConfig& m) {
  m.layers = at_most(a, "num_layers", most_layers);
  m.hidden = a.whole("hidden_size");
  m.ffn_hidden = a.whole("ffn_hidden_size");
  m.heads = int(a.whole("num_attention_heads"));
  // Without the flag the number is 1 and means nothing.
  if (a.flag("group_query_attention")) m.groups = int(a.whole("num_query_groups"));
  m.channels = a.whole("kv_channels");
  m.sequence = a.whole("seq_length");
  m.max_positions = a.whole("max_position_embeddings");
  // Its losses are over the rows that pad a vocabulary, too.
  m.vocabulary = a.whole("padded_vocab_size", a.whole("vocab_size"));
  m.vocabulary_unit = a.whole("make_vocab_size_divisible_by", m.vocabulary_unit);
}

void positions(const Arguments& a, ModelConfig& m) {
  const std::string kind = a.word("position_embedding_type", "learned_absolute");
  if (kind == "rope")
    m.positions = Positions::rotary;
  else if (kind == "none")
    m.positions = Positions::none;
  else if (kind == "relative" && m.kind == name_of(Family::t5))
    m.positions = Positions::relative;
  else if (kind != "learned_absolute")
    refuse(a, "position_embedding_type", kind + " is in use, which weft does not read yet");
  m.rotary.base = a.real("rotary_base", m.rotary.base);
  m.rotary.percent = a.real("rotary_percent", m.rotary.percent);
  m.rotary.interleaved = a.flag("rotary_interleaved");
  if (const double factor = a.real("rotary_seq_len_interpolation_factor", 1); factor != 1) {
    m.rotary.scaling = RotaryScaling::linear;
    m.rotary.factor = factor;
  }
  if (!a.flag("use_rope_scaling")) return;
  m.rotary.scaling = RotaryScaling::llama3;
  m.rotary.factor = a.real("rope_scaling_factor", 8);
  m.rotary.original_positions = 8192;
}

void norms(const Arguments& a, ModelConfig& m) {
  const std::string kind = a.word("normalization", "LayerNorm");
  if (kind != "LayerNorm" && kind != "RMSNorm")
    refuse(a, "normalization", kind + " is no norm that weft knows");
  m.norm = kind == "RMSNorm" ? NormKind::rms : NormKind::layer;
  m.norm_epsilon = a.real("norm_epsilon", a.real("layernorm_epsilon", m.norm_epsilon));
  m.norm_centered_gain = a.flag("apply_layernorm_1p");
  m.qk_norm = a.flag("qk_layernorm");
  m.residual_after_norm = a.flag("apply_residual_connection_post_layernorm");
  m.residual_in_f32 = a.flag("fp32_residual_connection");
}

// The fused form of gelu is that of tanh.
void mlp(const Arguments& a, ModelConfig& m) {
  m.gated = a.flag("swiglu") || a.flag("geglu") || a.flag("quick_geglu");
  if (a.flag("swiglu"))
    m.activation = Activation::silu;
  else if (a.flag("quick_geglu"))
    m.activation = Activation::quick_gelu;
  else if (a.flag("squared_relu"))
    m.activation = Activation::squared_relu;
  else
    m.activation =
        a.flag("openai_gelu") || a.flag("bias_gelu_fusion", true) ? Activation::gelu : Activation::gelu_erf;
  m.gate_limit = a.real("activation_func_clamp_value");
  m.gate_offset = a.real("glu_linear_offset");
  m.linear_bias = a.flag("add_bias_linear", true);
  m.qkv_bias = m.linear_bias || a.flag("add_qkv_bias");
}

void attention(const Arguments& a, ModelConfig& m) {
  const std::string sink = a.word("softmax_type", "vanilla");
  m.sink = sink == "learnable" ? Sink::learned : sink == "off-by-one" ? Sink::zero : Sink::none;
  m.softmax_scale = a.real("softmax_scale");
  const Value* window = a.find("window_size");
  if (window == nullptr) return;
  const auto* sides = window->list();
  const std::int64_t* left = sides != nullptr && sides->size() == 2 ? sides->front().integer() : nullptr;
  if (left == nullptr) refuse(a, "window_size", "is no pair of numbers");
  m.window = *left < 0 ? 0 : *left + 1;  // itself included
  by_layers(a, "window_attn_skip_freq", m.window_full_every, m.window_layers);
}

RouterScore score_of(const Arguments& a) {
  constexpr auto all = words(RouterScore{});
  const std::string word = a.word("moe_router_score_function", all.front());
  const auto found = std::ranges::find(all, word);
  if (found == all.end()) refuse(a, "moe_router_score_function", word + " is no score that weft knows");
  return RouterScore(found - all.begin());
}

/// One word or number, or a list of them.
std::vector<Value> listed(const Arguments& a, std::string_view name) {
  const Value* value = a.find(name);
  if (value == nullptr) return {};
  return value->list() != nullptr ? *value->list() : std::vector<Value>{*value};
}

void balancing(const Arguments& a, RouterConfig& r) {
  constexpr auto all = words(Balancing{});
  const std::vector<Value> kinds = listed(a, "moe_router_load_balancing_type"),
                           weights = listed(a, "moe_aux_loss_coeff");
  if (!kinds.empty()) r.balancing.clear();
  for (const Value& kind : kinds) {
    const auto found = kind.text() == nullptr ? all.end() : std::ranges::find(all, *kind.text());
    if (found == all.end()) refuse(a, "moe_router_load_balancing_type", "has a loss that weft does not know");
    r.balancing.push_back(Balancing(found - all.begin()));
  }
  if (!weights.empty()) r.coefficients.clear();
  for (const Value& weight : weights) {
    if (weight.real() == nullptr && weight.integer() == nullptr)
      refuse(a, "moe_aux_loss_coeff", "is " + std::string(weight.kind()) + ", expected numbers");
    r.coefficients.push_back(weight.real() != nullptr ? *weight.real() : double(*weight.integer()));
  }
  r.z_loss = a.real("moe_z_loss_coeff");
}

void experts(const Arguments& a, ModelConfig& m) {
  ExpertsConfig& e = m.experts;
  e.count = int(a.whole("num_experts"));
  if (e.count == 0) return;
  by_layers(a, "moe_layer_freq", e.every, e.layers);
  e.ffn_hidden = a.whole("moe_ffn_hidden_size");
  e.shared_hidden = a.whole("moe_shared_expert_intermediate_size");
  e.shared_gate = a.flag("moe_shared_expert_gate");
  e.weigh_input = a.flag("moe_apply_probs_on_input");
  RouterConfig& r = e.router;
  r.chosen = int(a.whole("moe_router_topk", r.chosen));
  r.score = score_of(a);
  r.softmax_first = a.flag("moe_router_pre_softmax");
  r.groups = int(a.whole("moe_router_num_groups"));
  r.groups_kept = int(a.whole("moe_router_group_topk"));
  r.scaling = a.real("moe_router_topk_scaling_factor", 1);
  r.expert_bias = a.flag("moe_router_enable_expert_bias");
  balancing(a, r);
}

/// Of heads that share no keys, and are as wide as their parts.
void latents(const Arguments& a, ModelConfig& m) {
  if (!a.flag("multi_latent_attention")) return;
  LatentConfig& l = m.latent;
  l.on = true;
  l.query_rank = a.whole("q_lora_rank");
  l.rank = a.whole("kv_lora_rank", l.rank);
  l.plain_channels = a.whole("qk_head_dim", l.plain_channels);
  l.turned_channels = a.whole("qk_pos_emb_head_dim", l.turned_channels);
  l.value_channels = a.whole("v_head_dim", l.value_channels);
  m.groups = 0;
  m.channels = 0;
  m.qkv_bias = false;
  RotaryConfig& r = m.rotary;
  if (r.interleaved)
    refuse(a, "rotary_interleaved", "is in use with multi_latent_attention, which weft does not read yet");
  if (r.scaling != RotaryScaling::none)
    refuse(a, "multi_latent_attention",
           "is in use with positions that are stretched as those of other attention are, which weft does not "
           "read yet");
  const std::string kind = a.word("rope_type", "yarn");
  const double factor = a.real("rotary_scaling_factor", 1), mscale_all = a.real("mscale_all_dim");
  if (kind != "yarn" && kind != "rope") refuse(a, "rope_type", kind + " is no kind that weft knows");
  if (kind == "rope" && factor > 1 && mscale_all != 0)
    refuse(a, "rope_type", "rope is in use with mscale_all_dim, which weft does not read yet");
  if (kind == "rope" || factor == 1) return;
  r.scaling = RotaryScaling::yarn;
  r.factor = factor;
  r.original_positions = a.whole("original_max_position_embeddings", 4096);
  r.beta_fast = a.real("beta_fast", r.beta_fast);
  r.beta_slow = a.real("beta_slow", r.beta_slow);
  r.mscale = a.real("mscale", r.mscale);
  r.mscale_all = mscale_all;
}

void further_tokens(const Arguments& a, ModelConfig& m) {
  m.ahead.depths = at_most(a, "mtp_num_layers", most_depths);
  m.ahead.factor = a.real("mtp_loss_scaling_factor", m.ahead.factor);
}

/// As many layers as a GPT has are its decoder's.
void two_stacks(const Arguments& a, ModelConfig& m) {
  m.decoder_layers = m.layers;
  m.layers = at_most(a, "encoder_num_layers", most_layers, m.layers);
  m.sequence = a.whole("encoder_seq_length", m.sequence);
  m.decoder_sequence = a.whole("decoder_seq_length");
  m.relative.buckets = int(a.whole("relative_attention_num_buckets", m.relative.buckets));
  m.relative.farthest = int(a.whole("relative_attention_max_distance", m.relative.farthest));
}

}  // namespace

const Value* Arguments::find(std::string_view name) const {
  const Value* value = args_.find(name);
  return value == nullptr || value->is_none() ? nullptr : value;
}

bool Arguments::flag(std::string_view name, bool otherwise) const {
  const Value* value = find(name);
  if (value == nullptr) return otherwise;
  if (const bool* flag = value->boolean()) return *flag;
  refuse(*this, name, "is " + std::string(value->kind()) + ", expected True or False");
}

std::int64_t Arguments::whole(std::string_view name, std::int64_t otherwise) const {
  const Value* value = find(name);
  if (value == nullptr) return otherwise;
  const std::int64_t* number = value->integer();
  if (number == nullptr || *number < 0 || *number > std::int64_t(legal::count_limit))
    refuse(*this, name, "is " + std::string(value->kind()) + ", expected a number that can be a size");
  return *number;
}

double Arguments::real(std::string_view name, double otherwise) const {
  const Value* value = find(name);
  if (value == nullptr) return otherwise;
  if (const double* number = value->real()) return *number;
  if (const std::int64_t* number = value->integer()) return double(*number);
  refuse(*this, name, "is " + std::string(value->kind()) + ", expected a number");
}

std::string Arguments::word(std::string_view name, std::string_view otherwise) const {
  const Value* value = find(name);
  if (value == nullptr) return std::string(otherwise);
  if (const std::string* text = value->text()) return *text;
  if (const torch::Named* named = value->named()) return named->name.substr(named->name.rfind('.') + 1);
  return std::string(otherwise);
}

ModelConfig model_of(const Arguments& args, Family family) {
  for (const std::string_view name : unread) must_not_say(args, name);
  ModelConfig model;
  model.kind = name_of(family);
  sizes(args, model);
  positions(args, model);
  norms(args, model);
  mlp(args, model);
  attention(args, model);
  experts(args, model);
  latents(args, model);
  further_tokens(args, model);
  if (family == Family::t5) two_stacks(args, model);
  if (family == Family::bert) model.sentence_order = args.flag("bert_binary_head", true);
  model.tied_output = !args.flag("untie_embeddings_and_output_weights");
  model.hidden_dropout = args.real("hidden_dropout", model.hidden_dropout);
  model.attention_dropout = args.real("attention_dropout", model.attention_dropout);
  try {
    complete(model);
  } catch (const Error& e) {
    fail(Kind::data, args.who(), ": ", e.what());
  }
  return model;
}

}  // namespace weft::exchange::megatron
