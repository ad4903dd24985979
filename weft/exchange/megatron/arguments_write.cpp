#include "weft/exchange/megatron/arguments_write.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/number.h"
#include "weft/base/whole.h"
#include "weft/exchange/hub_config.h"
#include "weft/exchange/megatron/arguments.h"

namespace weft::exchange::megatron {
namespace {

using torch::Value;

/// Megatron's own, where --make-vocab-size-divisible-by says nothing.
constexpr std::int64_t usual_unit = 128;

class Writer {
 public:
  explicit Writer(const ModelConfig& model) : m_(model) {}

  torch::Map all(Dtype dtype) {
    sizes();
    positions();
    norms();
    mlp();
    attention();
    experts();
    add("untie_embeddings_and_output_weights", !m_.tied_output);
    add("hidden_dropout", m_.hidden_dropout);
    add("attention_dropout", m_.attention_dropout);
    run(dtype);
    return {"argparse.Namespace", std::move(entries_)};
  }

 private:
  void add(const char* name, Value value) {
    entries_.emplace_back(Value(std::string(name)), std::move(value));
  }
  void add(const char* name, bool flag) { add(name, Value(flag)); }
  void add(const char* name, std::int64_t number) { add(name, Value(number)); }
  void add(const char* name, int number) { add(name, Value(std::int64_t(number))); }
  void add(const char* name, double number) { add(name, Value(number)); }
  void add(const char* name, const char* word) { add(name, Value(std::string(word))); }
  void add(const char* name, const std::vector<int>& numbers) {
    std::vector<Value> list;
    for (const int number : numbers) list.emplace_back(std::int64_t(number));
    add(name, Value(std::move(list)));
  }
  /// None where it is not in use.
  template <class Number>
  void add_used(const char* name, Number number) {
    add(name, number == 0 ? Value() : Value(number));
  }

  void sizes();
  void positions();
  void norms();
  void mlp();
  void attention();
  void experts();
  void run(Dtype dtype);

  const ModelConfig& m_;
  std::vector<std::pair<Value, Value>> entries_;
};

void Writer::sizes() {
  const bool groups = m_.groups != m_.heads;
  add("num_layers", m_.layers);
  add("hidden_size", m_.hidden);
  add("ffn_hidden_size", m_.ffn_hidden);
  add("num_attention_heads", m_.heads);
  add("group_query_attention", groups);
  add("num_query_groups", groups ? m_.groups : 1);
  add("kv_channels", m_.channels);
  add("seq_length", m_.sequence);
  add("max_position_embeddings", m_.max_positions > 0 ? m_.max_positions : m_.sequence);
  add("vocab_size", m_.vocabulary);
  add("padded_vocab_size", padded_rows(m_));
  add("make_vocab_size_divisible_by", std::max(m_.vocabulary_unit, usual_unit));
}

void Writer::positions() {
  const bool rotary = m_.positions == Positions::rotary;
  add("position_embedding_type", rotary                            ? "rope"
                                 : m_.positions == Positions::none ? "none"
                                                                   : "learned_absolute");
  if (const auto whole = whole_number(m_.rotary.base))
    add("rotary_base", *whole);
  else
    add("rotary_base", m_.rotary.base);
  add("rotary_percent", m_.rotary.percent);
  add("rotary_interleaved", m_.rotary.interleaved);
  const bool linear = m_.rotary.scaling == RotaryScaling::linear;
  add("rotary_seq_len_interpolation_factor", linear ? Value(m_.rotary.factor) : Value());
  const bool stretched = m_.rotary.scaling == RotaryScaling::llama3;
  add("use_rope_scaling", stretched);
  add("rope_scaling_factor", stretched ? m_.rotary.factor : 8.0);
}

void Writer::norms() {
  add("normalization", m_.norm == NormKind::rms ? "RMSNorm" : "LayerNorm");
  add("norm_epsilon", m_.norm_epsilon);
  add("layernorm_epsilon", m_.norm_epsilon);  // as it was called before
  add("apply_layernorm_1p", m_.norm_centered_gain);
  add("qk_layernorm", m_.qk_norm);
  add("apply_residual_connection_post_layernorm", m_.residual_after_norm);
  add("fp32_residual_connection", m_.residual_in_f32);
}

// A gelu by tanh is that of OpenAI or that of the fused kernel, which adds a bias.
void Writer::mlp() {
  const bool plain = !m_.gated;
  add("swiglu", m_.gated && m_.activation == Activation::silu);
  add("quick_geglu", m_.gated && m_.activation == Activation::quick_gelu);
  add("squared_relu", plain && m_.activation == Activation::squared_relu);
  const bool by_tanh = plain && m_.activation == Activation::gelu;
  add("openai_gelu", by_tanh && !m_.linear_bias);
  add("bias_gelu_fusion", by_tanh && m_.linear_bias);
  add_used("activation_func_clamp_value", m_.gate_limit);
  add("glu_linear_offset", m_.gate_offset);
  add("add_bias_linear", m_.linear_bias);
  add("add_qkv_bias", m_.qkv_bias && !m_.linear_bias);
}

void Writer::attention() {
  add("softmax_type", m_.sink == Sink::learned ? "learnable"
                      : m_.sink == Sink::zero  ? "off-by-one"
                                               : "vanilla");
  add_used("softmax_scale", m_.softmax_scale);
  if (m_.window == 0) return add("window_size", Value());
  add("window_size", std::vector<int>{int(m_.window) - 1, 0});
  if (m_.window_layers.empty())
    add("window_attn_skip_freq", Value());
  else
    add("window_attn_skip_freq", m_.window_layers);
}

void Writer::experts() {
  const ExpertsConfig& e = m_.experts;
  add_used("num_experts", std::int64_t(e.count));
  if (e.count == 0) return;
  if (std::ranges::count(e.layers, 0) == 0)
    add("moe_layer_freq", 1);
  else
    add("moe_layer_freq", e.layers);
  add("moe_ffn_hidden_size", e.ffn_hidden);
  add_used("moe_shared_expert_intermediate_size", e.shared_hidden);
  add("moe_shared_expert_gate", e.shared_gate);
  add("moe_apply_probs_on_input", e.weigh_input);
  add("moe_grouped_gemm", true);
  const RouterConfig& r = e.router;
  add("moe_router_topk", r.chosen);
  add("moe_router_score_function", std::string(words(r.score)[std::size_t(r.score)]).c_str());
  add("moe_router_pre_softmax", r.softmax_first);
  add_used("moe_router_num_groups", std::int64_t(r.groups));
  add_used("moe_router_group_topk", std::int64_t(r.groups_kept));
  add_used("moe_router_topk_scaling_factor", r.scaling == 1 ? 0 : r.scaling);
  add("moe_router_enable_expert_bias", r.expert_bias);
  std::vector<Value> kinds, weights;
  for (const Balancing kind : r.balancing) kinds.emplace_back(std::string(words(kind)[std::size_t(kind)]));
  for (const double weight : r.coefficients) weights.emplace_back(weight);
  add("moe_router_load_balancing_type", kinds.size() == 1 ? kinds.front() : Value(kinds));
  add("moe_aux_loss_coeff", weights.size() == 1 ? weights.front() : Value(weights));
  add_used("moe_z_loss_coeff", r.z_loss);
}

/// What Megatron-LM asks of every checkpoint.
void Writer::run(Dtype dtype) {
  add("bf16", dtype == Dtype::bf16);
  add("fp16", dtype == Dtype::f16);
  const char* type = dtype == Dtype::bf16 ? "bfloat16" : dtype == Dtype::f16 ? "float16" : "float32";
  add("params_dtype", Value(torch::Named{.name = std::string("torch.") + type, .arguments = {}}));
  add("transformer_impl", "transformer_engine");
  add("ckpt_format", "torch_dist");
  for (const char* ranks :
       {"tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size",
        "context_parallel_size", "data_parallel_size", "world_size"})
    add(ranks, 1);
  add("virtual_pipeline_model_parallel_size", Value());
  for (const char* count :
       {"iteration", "consumed_train_samples", "consumed_valid_samples", "skipped_train_samples"})
    add(count, 0);
}

/// load_args_from_checkpoint of its training/checkpointing.py takes none of these.
constexpr std::string_view not_taken[] = {"norm_epsilon",
                                          "qk_layernorm",
                                          "apply_residual_connection_post_layernorm",
                                          "fp32_residual_connection",
                                          "rotary_seq_len_interpolation_factor",
                                          "use_rope_scaling",
                                          "rope_scaling_factor",
                                          "openai_gelu",
                                          "bias_gelu_fusion",
                                          "quick_geglu",
                                          "activation_func_clamp_value",
                                          "glu_linear_offset",
                                          "softmax_type",
                                          "softmax_scale",
                                          "window_size",
                                          "window_attn_skip_freq",
                                          "moe_shared_expert_gate",
                                          "moe_apply_probs_on_input",
                                          "moe_router_num_groups",
                                          "moe_router_group_topk",
                                          "moe_router_load_balancing_type",
                                          "moe_aux_loss_coeff",
                                          "moe_z_loss_coeff"};

bool is_usual(std::string_view name, const Value& value) {
  if (const double* number = value.real())
    return *number == (name == "norm_epsilon" ? 1e-5 : name == "rope_scaling_factor" ? 8.0 : 0.0);
  if (const std::string* word = value.text()) return *word == "vanilla" || *word == "aux_loss";
  if (const bool* flag = value.boolean()) return !*flag;
  return value.is_none();
}

/// Lists of layers and pairs are one word there, other lists are several.
std::string as_typed(std::string_view name, const Value& value) {
  if (const double* number = value.real()) return text(*number);
  if (const std::int64_t* number = value.integer()) return text(*number);
  if (const std::string* word = value.text()) return *word;
  if (value.list() == nullptr) return "";
  std::vector<std::string> words;
  for (const Value& one : *value.list()) words.push_back(as_typed(name, one));
  if (name == "window_attn_skip_freq") return "[" + join(words, ",") + "]";
  return join(words, name == "window_size" ? "," : " ");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> left_out(const torch::Map& arguments) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string_view name : not_taken) {
    const Value* value = arguments.find(name);
    if (name == "bias_gelu_fusion") {
      const auto is = [&](const char* flag) { return *arguments.find(flag)->boolean(); };
      const bool fused = is("swiglu") || is("quick_geglu") || is("squared_relu") || is("openai_gelu");
      if (!fused && !*value->boolean()) out.emplace_back("no_bias_gelu_fusion", "");
    } else if (value != nullptr && !is_usual(name, *value)) {
      out.emplace_back(name, as_typed(name, *value));
    }
  }
  return out;
}

std::int64_t padded_rows(const ModelConfig& model) {
  return round_up(model.vocabulary, std::max(model.vocabulary_unit, usual_unit));
}

torch::Map arguments_of(const ModelConfig& model, Dtype dtype) {
  torch::Map out = Writer(model).all(dtype);
  ModelConfig wanted = model;
  wanted.vocabulary = padded_rows(model);  // over which Megatron's own losses run
  ModelConfig said = model_of(Arguments(out, "Megatron's arguments"));
  if (const auto apart = disagreement(wanted, said))
    fail(Kind::usage, "Megatron-LM has no arguments for a model whose ", apart->path, " is ", apart->run,
         "; checkpoints of weft and of Hugging Face can hold it");
  return out;
}

}  // namespace weft::exchange::megatron
