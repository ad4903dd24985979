// The architectures of llama.cpp that weft writes and reads: what each adds to what all have in common. A
// tensor that stands in no list here has no place in llama.cpp's own.
#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/exchange/gguf/architecture.h"

namespace weft::exchange::gguf {
namespace {

using Types = std::span<const std::string_view>;
using Names = std::span<const TensorName>;

// ---- names

constexpr TensorName around[]{{"model.embed_tokens.weight", "token_embd.weight"},
                              {"model.norm.weight", "output_norm.weight"},
                              {"lm_head.weight", "output.weight"}};
constexpr TensorName norms_before[]{{"input_layernorm.weight", "attn_norm.weight"},
                                    {"post_attention_layernorm.weight", "ffn_norm.weight"}};
constexpr TensorName attention[]{{"self_attn.q_proj.weight", "attn_q.weight"},
                                 {"self_attn.k_proj.weight", "attn_k.weight"},
                                 {"self_attn.v_proj.weight", "attn_v.weight"},
                                 {"self_attn.o_proj.weight", "attn_output.weight"}};
constexpr TensorName attention_biases[]{{"self_attn.q_proj.bias", "attn_q.bias"},
                                        {"self_attn.k_proj.bias", "attn_k.bias"},
                                        {"self_attn.v_proj.bias", "attn_v.bias"}};
constexpr TensorName head_norms[]{{"self_attn.q_norm.weight", "attn_q_norm.weight"},
                                  {"self_attn.k_norm.weight", "attn_k_norm.weight"}};
constexpr TensorName gated_mlp[]{{"mlp.gate_proj.weight", "ffn_gate.weight"},
                                 {"mlp.up_proj.weight", "ffn_up.weight"},
                                 {"mlp.down_proj.weight", "ffn_down.weight"}};
[[maybe_unused]] constexpr TensorName experts[]{{"mlp.gate.weight", "ffn_gate_inp.weight"},
                                                {"mlp.experts.*.gate_proj.weight", "ffn_gate_exps.weight"},
                                                {"mlp.experts.*.up_proj.weight", "ffn_up_exps.weight"},
                                                {"mlp.experts.*.down_proj.weight", "ffn_down_exps.weight"}};
constexpr TensorName of_llama[]{{"self_attn.q_proj.weight", "attn_q.weight", Order::queries},
                                {"self_attn.k_proj.weight", "attn_k.weight", Order::keys},
                                {"self_attn.v_proj.weight", "attn_v.weight"},
                                {"self_attn.o_proj.weight", "attn_output.weight"},
                                {"self_attn.q_proj.bias", "attn_q.bias", Order::queries},
                                {"self_attn.k_proj.bias", "attn_k.bias", Order::keys},
                                {"self_attn.v_proj.bias", "attn_v.bias"},
                                {"self_attn.o_proj.bias", "attn_output.bias"},
                                {"mlp.gate_proj.bias", "ffn_gate.bias"},
                                {"mlp.up_proj.bias", "ffn_up.bias"},
                                {"mlp.down_proj.bias", "ffn_down.bias"},
                                {"block_sparse_moe.gate.weight", "ffn_gate_inp.weight"},
                                {"block_sparse_moe.experts.*.w1.weight", "ffn_gate_exps.weight"},
                                {"block_sparse_moe.experts.*.w3.weight", "ffn_up_exps.weight"},
                                {"block_sparse_moe.experts.*.w2.weight", "ffn_down_exps.weight"}};
constexpr TensorName of_gpt2[]{{"transformer.wte.weight", "token_embd.weight"},
                               {"transformer.wpe.weight", "position_embd.weight"},
                               {"transformer.ln_f.weight", "output_norm.weight"},
                               {"transformer.ln_f.bias", "output_norm.bias"},
                               {"lm_head.weight", "output.weight"},
                               {"ln_1.weight", "attn_norm.weight"},
                               {"ln_1.bias", "attn_norm.bias"},
                               {"ln_2.weight", "ffn_norm.weight"},
                               {"ln_2.bias", "ffn_norm.bias"},
                               {"attn.c_attn.weight", "attn_qkv.weight", Order::turned},
                               {"attn.c_attn.bias", "attn_qkv.bias"},
                               {"attn.c_proj.weight", "attn_output.weight", Order::turned},
                               {"attn.c_proj.bias", "attn_output.bias"},
                               {"mlp.c_fc.weight", "ffn_up.weight", Order::turned},
                               {"mlp.c_fc.bias", "ffn_up.bias"},
                               {"mlp.c_proj.weight", "ffn_down.weight", Order::turned},
                               {"mlp.c_proj.bias", "ffn_down.bias"}};

// ---- settings

constexpr Setting rotary_settings[]{
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads", true, "attention.head_count"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", false}};
constexpr Setting gpt2_settings[]{
    {"block_count", "n_layer"},         {"context_length", "n_positions"},
    {"embedding_length", "n_embd"},     {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon", false}};

// Heads' width is that of all channels over the heads, where it is not said.
void write_heads(const Json& theirs, KeysToWrite& keys) {
  const Value width = whole(theirs.at("head_dim").get<std::int64_t>());
  keys.add("attention.key_length", width);
  keys.add("attention.value_length", width);
  keys.add("rope.dimension_count", width);
  write_rotary(theirs, keys);
}
void read_heads(const Keys& keys, Json& theirs) {
  const std::int64_t heads = theirs.at("num_attention_heads").get<std::int64_t>();
  if (heads < 1) keys.refuse("attention.head_count", "expected 1 or more");
  const std::int64_t width =
      keys.whole("attention.key_length").value_or(theirs.at("hidden_size").get<std::int64_t>() / heads);
  keys.must_be("attention.value_length", width);
  keys.must_be("rope.dimension_count", width);
  theirs["head_dim"] = width;
  read_rotary(keys, theirs);
}

// Llama, Mistral, and Mixtral, which all are one architecture there.
void write_llama(const Json& theirs, KeysToWrite& keys) {
  write_heads(theirs, keys);
  if (!theirs.contains("num_local_experts")) return;
  keys.add("expert_count", whole(theirs.at("num_local_experts").get<std::int64_t>()));
  keys.add("expert_used_count", whole(theirs.at("num_experts_per_tok").get<std::int64_t>()));
}
void read_llama(const Keys& keys, Json& theirs) {
  read_heads(keys, theirs);
  if (keys.whole("expert_count").value_or(0) > 0) {
    theirs["model_type"] = "mixtral";
    theirs["num_local_experts"] = keys.must_be_whole("expert_count");
    theirs["num_experts_per_tok"] = keys.must_be_whole("expert_used_count");
    return;
  }
  theirs["attention_bias"] = keys.contents().has("blk.0.attn_q.bias");
  theirs["mlp_bias"] = keys.contents().has("blk.0.ffn_gate.bias");
}

// Its heads are as wide as all of them fill the model.
void write_qwen2(const Json& theirs, KeysToWrite& keys) {
  const auto heads = theirs.at("num_attention_heads").get<std::int64_t>(),
             width = theirs.at("head_dim").get<std::int64_t>(),
             hidden = theirs.at("hidden_size").get<std::int64_t>();
  if (heads * width != hidden)
    fail(Kind::usage, "llama.cpp's qwen2 has heads that fill the hidden size, and ", heads, " heads of ",
         width, " channels do not fill ", hidden);
  write_heads(theirs, keys);
}
void read_qwen2(const Keys& keys, Json& theirs) {
  read_heads(keys, theirs);
  theirs["use_sliding_window"] = false;
}

void write_nothing(const Json&, KeysToWrite&) {}
void read_gpt2(const Keys& keys, Json& theirs) {
  keys.must_be("attention.head_count_kv", theirs.at("n_head").get<std::int64_t>());
  theirs["activation_function"] = "gelu_new";
}

constexpr std::string_view llama_types[]{"llama", "mistral", "mixtral"};
constexpr std::string_view qwen2_types[]{"qwen2"};
constexpr std::string_view qwen3_types[]{"qwen3"};
constexpr std::string_view gpt2_types[]{"gpt2"};

const std::vector<Architecture>& all() {
  static const std::vector<Architecture> list{
      {.name = "llama",
       .types = llama_types,
       .layers = "model.layers.",
       .names = {around, norms_before, of_llama, gated_mlp},
       .settings = rotary_settings,
       .write = write_llama,
       .read = read_llama,
       .stretches_by_tensor = true},
      {.name = "qwen2",
       .types = qwen2_types,
       .layers = "model.layers.",
       .names = {around, norms_before, attention, attention_biases, gated_mlp},
       .settings = rotary_settings,
       .write = write_qwen2,
       .read = read_qwen2},
      {.name = "qwen3",
       .types = qwen3_types,
       .layers = "model.layers.",
       .names = {around, norms_before, attention, head_norms, gated_mlp},
       .settings = rotary_settings,
       .write = write_heads,
       .read = read_qwen2},
      {.name = "gpt2",
       .types = gpt2_types,
       .layers = "transformer.h.",
       .names = {of_gpt2},
       .settings = gpt2_settings,
       .write = write_nothing,
       .read = read_gpt2},
  };
  return list;
}

}  // namespace

const Architecture& architecture_of_type(std::string_view type) {
  std::vector<std::string_view> known;
  for (const Architecture& one : all()) {
    if (std::ranges::find(one.types, type) != one.types.end()) return one;
    known.insert(known.end(), one.types.begin(), one.types.end());
  }
  fail(Kind::usage, "weft writes GGUF files of ", join(known, ", "), ", and this model is a ", type,
       "; --to hf writes it, and llama.cpp's own converter may know it");
}

const Architecture& architecture_named(const std::string& name, const std::string& who) {
  std::vector<std::string_view> known;
  for (const Architecture& one : all()) {
    if (one.name == name) return one;
    known.push_back(one.name);
  }
  fail(Kind::data, who, ": its general.architecture is ", name.substr(0, 80), ", and weft reads ",
       join(known, ", "));
}

}  // namespace weft::exchange::gguf
