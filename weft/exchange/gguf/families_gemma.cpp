// Gemma 1, 2 and 3, whose gains are stored around zero there and around one in a file.
#include <cmath>

#include "weft/base/error.h"
#include "weft/exchange/gguf/family_parts.h"

namespace weft::exchange::gguf {
namespace {

constexpr TensorName around_gemma[]{{"model.embed_tokens.weight", "token_embd.weight"},
                                    {"model.norm.weight", "output_norm.weight", Order::same, 1}};
constexpr TensorName norms_of_gemma[]{{"input_layernorm.weight", "attn_norm.weight", Order::same, 1},
                                      {"post_attention_layernorm.weight", "ffn_norm.weight", Order::same, 1}};
constexpr TensorName norms_around[]{
    {"input_layernorm.weight", "attn_norm.weight", Order::same, 1},
    {"post_attention_layernorm.weight", "post_attention_norm.weight", Order::same, 1},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight", Order::same, 1},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight", Order::same, 1}};
constexpr TensorName head_norms_of_gemma[]{{"self_attn.q_norm.weight", "attn_q_norm.weight", Order::same, 1},
                                           {"self_attn.k_norm.weight", "attn_k_norm.weight", Order::same, 1}};
constexpr TensorName output_of_gemma[]{{"lm_head.weight", "output.weight"}};

/// Scores of the largest models are scaled by all channels over the heads, of which llama.cpp knows by the
/// number of their layers alone.
constexpr std::int64_t layers_of_gemma2_27b = 46, layers_of_gemma3_27b = 62;
std::int64_t channels_of_scores(const Json& theirs, std::int64_t layers_of_27b) {
  const auto heads = theirs.at("num_attention_heads").get<std::int64_t>();
  if (theirs.at("num_hidden_layers").get<std::int64_t>() == layers_of_27b)
    return theirs.at("hidden_size").get<std::int64_t>() / heads;
  return theirs.at("head_dim").get<std::int64_t>();
}

void write_cap(const Json& theirs, const char* name, const char* key, KeysToWrite& keys) {
  const auto cap = theirs.find(name);
  if (cap != theirs.end() && cap->is_number()) keys.add(key, real(cap->get<double>()));
}
void read_cap(const Keys& keys, const char* key, std::optional<double> usual, const char* name,
              Json& theirs) {
  const double cap = keys.real(key).value_or(usual.value_or(0));
  theirs[name] = cap > 0 ? Json(cap) : Json();
}

void read_gemma(const Keys& keys, Json& theirs) {
  if (keys.contents().has("output.weight"))
    fail(Kind::data, keys.contents().who, ": holds output.weight, and llama.cpp's gemma has none");
  read_heads(keys, theirs);
  theirs["hidden_activation"] = "gelu_pytorch_tanh";
}

void write_gemma2(const Json& theirs, KeysToWrite& keys) {
  write_heads(theirs, keys);
  write_window(theirs, keys);
  write_cap(theirs, "attn_logit_softcapping", "attn_logit_softcapping", keys);
  write_cap(theirs, "final_logit_softcapping", "final_logit_softcapping", keys);
}
void read_gemma2(const Keys& keys, Json& theirs) {
  read_gemma(keys, theirs);
  read_window(keys, theirs, 2);
  if (theirs.at("sliding_window").is_null()) keys.refuse("attention.sliding_window", "expected 1 or more");
  read_cap(keys, "attn_logit_softcapping", 50, "attn_logit_softcapping", theirs);
  read_cap(keys, "final_logit_softcapping", 30, "final_logit_softcapping", theirs);
  theirs["query_pre_attn_scalar"] = channels_of_scores(theirs, layers_of_gemma2_27b);
}

void write_gemma3(const Json& theirs, KeysToWrite& keys) {
  write_heads(theirs, keys);
  write_window(theirs, keys);
  write_cap(theirs, "final_logit_softcapping", "final_logit_softcapping", keys);
  keys.add("rope.freq_base_swa", real(theirs.value("rope_local_base_freq", 10000.0)));
}
void read_gemma3(const Keys& keys, Json& theirs) {
  read_heads(keys, theirs);
  theirs["hidden_activation"] = "gelu_pytorch_tanh";
  read_window(keys, theirs, 6);
  read_cap(keys, "final_logit_softcapping", {}, "final_logit_softcapping", theirs);
  theirs["rope_local_base_freq"] = keys.real("rope.freq_base_swa").value_or(10000);
  theirs["query_pre_attn_scalar"] = channels_of_scores(theirs, layers_of_gemma3_27b);
}

constexpr std::string_view gemma_types[]{"gemma"};
constexpr std::string_view gemma2_types[]{"gemma2"};
constexpr std::string_view gemma3_types[]{"gemma3_text"};

}  // namespace

std::vector<Architecture> architectures_of_gemma() {
  return {{.name = "gemma",
           .types = gemma_types,
           .layers = "model.layers.",
           .names = {around_gemma, norms_of_gemma, attention, gated_mlp},
           .settings = {rotary_settings},
           .write = write_heads,
           .read = read_gemma},
          {.name = "gemma2",
           .types = gemma2_types,
           .layers = "model.layers.",
           .names = {around_gemma, norms_around, attention, gated_mlp},
           .settings = {rotary_settings},
           .write = write_gemma2,
           .read = read_gemma2},
          {.name = "gemma3",
           .types = gemma3_types,
           .layers = "model.layers.",
           .names = {around_gemma, output_of_gemma, norms_around, attention, head_norms_of_gemma, gated_mlp},
           .settings = {rotary_settings},
           .write = write_gemma3,
           .read = read_gemma3}};
}

}  // namespace weft::exchange::gguf
