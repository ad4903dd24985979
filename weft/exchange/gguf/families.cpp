// Llama with its kin, Qwen 2 and 3, and GPT-2. A tensor that stands in no list here has no place in
// llama.cpp's own.
#include "weft/exchange/gguf/family_parts.h"

namespace weft::exchange::gguf {
namespace {

// ---- names

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

constexpr Setting gpt2_settings[]{
    {"block_count", "n_layer"},         {"context_length", "n_positions"},
    {"embedding_length", "n_embd"},     {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon", false}};

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

void write_qwen2(const Json& theirs, KeysToWrite& keys) {
  must_fill("qwen2", theirs);
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

}  // namespace

std::vector<Architecture> plain_architectures() {
  return {
      {.name = "llama",
       .types = llama_types,
       .layers = "model.layers.",
       .names = {around, norms_before, of_llama, gated_mlp},
       .settings = {rotary_settings},
       .write = write_llama,
       .read = read_llama,
       .stretches_by_tensor = true},
      {.name = "qwen2",
       .types = qwen2_types,
       .layers = "model.layers.",
       .names = {around, norms_before, attention, attention_biases, gated_mlp},
       .settings = {rotary_settings},
       .write = write_qwen2,
       .read = read_qwen2},
      {.name = "qwen3",
       .types = qwen3_types,
       .layers = "model.layers.",
       .names = {around, norms_before, attention, head_norms, gated_mlp},
       .settings = {rotary_settings},
       .write = write_heads,
       .read = read_qwen2},
      {.name = "gpt2",
       .types = gpt2_types,
       .layers = "transformer.h.",
       .names = {of_gpt2},
       .settings = {gpt2_settings},
       .write = write_nothing,
       .read = read_gpt2},
  };
}

}  // namespace weft::exchange::gguf
