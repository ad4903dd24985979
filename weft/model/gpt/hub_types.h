// The types of GPTs among Hugging Face's models: their words, and what each has.
#pragma once

#include <array>

#include "weft/model/hub.h"

namespace weft {

enum class GptType : std::uint8_t {
  gpt2,
  gpt_bigcode,
  gpt_neo,
  opt,
  gpt_neox,
  gptj,
  phi,
  falcon,
  cohere,
  cohere2,
  bloom,
  mpt,
  stablelm,
  starcoder2,
  olmo,
  nemotron,
  llama,
  mistral,
  qwen2,
  qwen3,
  gemma,
  gemma2,
  gemma3_text,
  phi3,
  smollm3,
  olmo2,
  olmo3,
  exaone4,
  glm4,
  granite,
  glm,
  arcee,
  seed_oss,
  ernie4_5,
  hunyuan_v1_dense,
  ministral3,
  qwen3_5_text,
  mixtral,
  granitemoe,
  granitemoeshared,
  hunyuan_v1_moe,
  qwen2_moe,
  qwen3_moe,
  olmoe,
  gpt_oss,
  qwen3_next,
  qwen3_5_moe_text,
  glm4_moe,
  dots1,
  minimax_m2,
  llama4_text,
  mamba2,
  bamba,
  granitemoehybrid,
  nemotron_h,
  deepseek_v3,
  deepseek_v2,
  kimi_k2,
  glm4_moe_lite
};
inline constexpr std::array<std::string_view, 59> gpt_types{"gpt2",
                                                            "gpt_bigcode",
                                                            "gpt_neo",
                                                            "opt",
                                                            "gpt_neox",
                                                            "gptj",
                                                            "phi",
                                                            "falcon",
                                                            "cohere",
                                                            "cohere2",
                                                            "bloom",
                                                            "mpt",
                                                            "stablelm",
                                                            "starcoder2",
                                                            "olmo",
                                                            "nemotron",
                                                            "llama",
                                                            "mistral",
                                                            "qwen2",
                                                            "qwen3",
                                                            "gemma",
                                                            "gemma2",
                                                            "gemma3_text",
                                                            "phi3",
                                                            "smollm3",
                                                            "olmo2",
                                                            "olmo3",
                                                            "exaone4",
                                                            "glm4",
                                                            "granite",
                                                            "glm",
                                                            "arcee",
                                                            "seed_oss",
                                                            "ernie4_5",
                                                            "hunyuan_v1_dense",
                                                            "ministral3",
                                                            "qwen3_5_text",
                                                            "mixtral",
                                                            "granitemoe",
                                                            "granitemoeshared",
                                                            "hunyuan_v1_moe",
                                                            "qwen2_moe",
                                                            "qwen3_moe",
                                                            "olmoe",
                                                            "gpt_oss",
                                                            "qwen3_next",
                                                            "qwen3_5_moe_text",
                                                            "glm4_moe",
                                                            "dots1",
                                                            "minimax_m2",
                                                            "llama4_text",
                                                            "mamba2",
                                                            "bamba",
                                                            "granitemoehybrid",
                                                            "nemotron_h",
                                                            "deepseek_v3",
                                                            "deepseek_v2",
                                                            "kimi_k2",
                                                            "glm4_moe_lite"};
/// What transformers calls a type's class, and what goes without saying there.
struct GptWays {
  std::string_view class_name;
  double base = 10000, epsilon = 1e-6;
  bool tied = false;
};
inline constexpr std::array<GptWays, gpt_types.size()> gpt_ways{
    {{"GPT2LMHeadModel"},
     {"GPTBigCodeForCausalLM"},
     {"GPTNeoForCausalLM"},
     {"OPTForCausalLM"},
     {"GPTNeoXForCausalLM"},
     {"GPTJForCausalLM"},
     {"PhiForCausalLM"},
     {.class_name = "FalconForCausalLM", .tied = true},
     {.class_name = "CohereForCausalLM", .base = 500000, .tied = true},
     {.class_name = "Cohere2ForCausalLM", .tied = true},
     {.class_name = "BloomForCausalLM", .tied = true},
     {.class_name = "MptForCausalLM", .tied = true},
     {"StableLmForCausalLM"},
     {.class_name = "Starcoder2ForCausalLM", .tied = true},
     {"OlmoForCausalLM"},
     {"NemotronForCausalLM"},
     {"LlamaForCausalLM"},
     {"MistralForCausalLM"},
     {"Qwen2ForCausalLM"},
     {"Qwen3ForCausalLM"},
     {.class_name = "GemmaForCausalLM", .tied = true},
     {.class_name = "Gemma2ForCausalLM", .tied = true},
     {.class_name = "Gemma3ForCausalLM", .base = 1e6, .tied = true},
     {.class_name = "Phi3ForCausalLM", .epsilon = 1e-5},
     {.class_name = "SmolLM3ForCausalLM", .base = 2e6, .tied = true},
     {.class_name = "Olmo2ForCausalLM", .epsilon = 1e-5},
     {.class_name = "Olmo3ForCausalLM", .base = 500000, .epsilon = 1e-5},
     {.class_name = "Exaone4ForCausalLM", .epsilon = 1e-5},
     {.class_name = "Glm4ForCausalLM", .epsilon = 1.5625e-7},
     {"GraniteForCausalLM"},
     {.class_name = "GlmForCausalLM", .epsilon = 1.5625e-7},
     {.class_name = "ArceeForCausalLM", .epsilon = 1e-5},
     {"SeedOssForCausalLM"},
     {.class_name = "Ernie4_5ForCausalLM", .base = 500000, .epsilon = 1e-5, .tied = true},
     {.class_name = "HunYuanDenseV1ForCausalLM", .epsilon = 1e-5},
     {.class_name = "Ministral3ForCausalLM", .epsilon = 1e-5},
     {"Qwen3_5ForCausalLM"},
     {.class_name = "MixtralForCausalLM", .base = 1e6, .epsilon = 1e-5},
     {"GraniteMoeForCausalLM"},
     {"GraniteMoeSharedForCausalLM"},
     {.class_name = "HunYuanMoEV1ForCausalLM", .epsilon = 1e-5},
     {"Qwen2MoeForCausalLM"},
     {"Qwen3MoeForCausalLM"},
     {.class_name = "OlmoeForCausalLM", .epsilon = 1e-5},
     {.class_name = "GptOssForCausalLM", .base = 150000, .epsilon = 1e-5},
     {"Qwen3NextForCausalLM"},
     {"Qwen3_5MoeForCausalLM"},
     {.class_name = "Glm4MoeForCausalLM", .epsilon = 1e-5},
     {"Dots1ForCausalLM"},
     {.class_name = "MiniMaxM2ForCausalLM", .base = 5e6},
     {.class_name = "Llama4ForCausalLM", .base = 500000, .epsilon = 1e-5},
     {"Mamba2ForCausalLM"},
     {.class_name = "BambaForCausalLM", .epsilon = 1e-5},
     {"GraniteMoeHybridForCausalLM"},
     {"NemotronHForCausalLM"},
     {"DeepseekV3ForCausalLM"},
     {"DeepseekV2ForCausalLM"},
     {"DeepseekV3ForCausalLM"},
     {.class_name = "Glm4MoeLiteForCausalLM", .epsilon = 1e-5}}};
constexpr const GptWays& ways_of(GptType type) { return gpt_ways[std::size_t(type)]; }
/// Places have a table.
constexpr bool has_learned_places(GptType type) { return type <= GptType::opt; }
/// Scores fall with distances, always.
constexpr bool falls(GptType type) { return type == GptType::bloom || type == GptType::mpt; }
/// Norms are layer norms; attention and MLPs may read the same.
constexpr bool has_layer_norms(GptType type) {
  return type >= GptType::gpt_neox && type <= GptType::nemotron;
}
/// Both behind one norm without a bias, and gated MLPs.
constexpr bool is_cohere(GptType type) { return type == GptType::cohere || type == GptType::cohere2; }
/// Of these, those whose attention and MLPs never stand beside each other.
constexpr bool stands_serially(GptType type) {
  return type == GptType::starcoder2 || type == GptType::olmo || type == GptType::nemotron;
}
/// State spaces, beside which some layers attend.
constexpr bool has_states(GptType type) {
  return type >= GptType::mamba2 && type <= GptType::granitemoehybrid;
}
/// Norms of queries and keys stand behind turning.
constexpr bool is_hunyuan(GptType type) {
  return type == GptType::hunyuan_v1_dense || type == GptType::hunyuan_v1_moe;
}
/// Granites without state spaces that have experts.
constexpr bool is_granite_mixture(GptType type) {
  return type == GptType::granitemoe || type == GptType::granitemoeshared;
}
/// Those whose layers have experts, or may.
constexpr bool has_experts(GptType type) { return type >= GptType::mixtral; }
/// Experts in Mixtral's words: their number is local, and their width that of an MLP.
constexpr bool says_as_mixtral(GptType type) {
  return type == GptType::mixtral || type == GptType::gpt_oss || type == GptType::minimax_m2 ||
         is_granite_mixture(type);
}
/// And in Mixtral's names.
constexpr bool names_as_mixtral(GptType type) {
  return type == GptType::mixtral || type == GptType::minimax_m2;
}
/// Kimi K2 and GLM-4.7-Flash are one under other names.
constexpr bool is_deepseek_v3(GptType type) {
  return type == GptType::deepseek_v3 || type == GptType::kimi_k2 || type == GptType::glm4_moe_lite;
}
/// A sigmoid of each logit, and a bias that only chooses.
constexpr bool chooses_by_sigmoids(GptType type) {
  return is_deepseek_v3(type) || type == GptType::glm4_moe || type == GptType::dots1 ||
         type == GptType::minimax_m2;
}
/// Layers that remember among those that attend, and gates of what attention's heads give.
constexpr bool remembers(GptType type) {
  return type == GptType::qwen3_next || type == GptType::qwen3_5_text || type == GptType::qwen3_5_moe_text;
}
/// Gains of norms are stored around zero.
constexpr bool is_gemma_type(GptType type) {
  return type == GptType::gemma || type == GptType::gemma2 || type == GptType::gemma3_text;
}
/// Gemmas whose norms stand around attention and MLPs, and of which much goes without saying.
constexpr bool is_later_gemma(GptType type) {
  return type == GptType::gemma2 || type == GptType::gemma3_text;
}
constexpr bool centers_gains(GptType type) {
  return is_gemma_type(type) || remembers(type) || type == GptType::nemotron;
}
/// Norms stand behind attention and MLPs, or around them.
constexpr bool norms_behind(GptType type) {
  return type == GptType::olmo2 || type == GptType::olmo3 || type == GptType::exaone4;
}
constexpr bool norms_around(GptType type) { return is_later_gemma(type) || type == GptType::glm4; }
/// Whether attention and MLPs have biases is said of either, and must be the same.
constexpr bool says_biases_twice(GptType type) {
  return type == GptType::llama || type == GptType::smollm3 || type == GptType::granite ||
         type == GptType::arcee;
}
/// Attention may have biases where MLPs have none.
constexpr bool may_bias_attention_alone(GptType type) {
  return says_biases_twice(type) || is_cohere(type) || type == GptType::qwen3 || type == GptType::qwen3_moe ||
         type == GptType::olmo || is_granite_mixture(type) || is_hunyuan(type);
}
/// Layers that look through a window turn by angles of their own.
constexpr bool turns_by_layer(GptType type) { return type == GptType::olmo3 || type == GptType::gemma3_text; }
/// A shared expert with a gate beside the others.
constexpr bool has_shared_gate(GptType type) { return type == GptType::qwen2_moe || remembers(type); }
/// Pairs of channels that turn stand next to each other.
constexpr bool stores_neighbors(GptType type) {
  return type == GptType::glm4 || type == GptType::glm || type == GptType::ernie4_5 ||
         type == GptType::llama4_text || type == GptType::gptj || is_cohere(type);
}
/// A part of each head turns.
constexpr bool turns_partly(GptType type) {
  return type == GptType::phi3 || type == GptType::glm4 || type == GptType::glm4_moe || remembers(type) ||
         type == GptType::glm || type == GptType::minimax_m2 || type == GptType::gpt_neox ||
         type == GptType::phi || type == GptType::nemotron || type == GptType::bamba ||
         type == GptType::stablelm;
}
/// Looks through one window in all layers, or in those that a list names.
constexpr bool slides_everywhere(GptType type) {
  return type == GptType::mistral || type == GptType::mixtral || type == GptType::phi3 ||
         type == GptType::starcoder2 || type == GptType::ministral3;
}
constexpr bool slides_by_layer(GptType type) {
  return type == GptType::qwen2 || type == GptType::qwen3 || type == GptType::smollm3 ||
         type == GptType::qwen2_moe || type == GptType::qwen3_moe || type == GptType::gpt_oss ||
         type == GptType::exaone4 || type == GptType::gemma2 || type == GptType::dots1 ||
         type == GptType::cohere2 || turns_by_layer(type);
}
/// Nothing but a width says that layers look through a window.
constexpr bool slides_unasked(GptType type) {
  return type == GptType::gpt_oss || type == GptType::exaone4 || type == GptType::gemma2 ||
         type == GptType::dots1 || type == GptType::cohere2 || turns_by_layer(type);
}
/// Layers that look through a window turn, the others do not.
constexpr bool turns_where_it_slides(GptType type) {
  return type == GptType::exaone4 || type == GptType::cohere2;
}
/// Experts in DeepSeek's words, of which layers without any stand first.
constexpr bool says_as_deepseek(GptType type) {
  return type == GptType::glm4_moe || type == GptType::dots1 || type >= GptType::deepseek_v3;
}
/// transformers gives the norms of latents an epsilon of their own.
inline constexpr double epsilon_of_latents = 1e-6;
/// Latent attention.
constexpr bool is_deepseek(GptType type) { return type >= GptType::deepseek_v3; }
/// The last two: of DeepSeek's further tokens.
inline constexpr std::array<StoredTwice, 4> gpt_stored_twice{{{"lm_head.weight", "embedding.words"},
                                                              {"embed_out.weight", "embedding.words"},
                                                              {"*.embed_tokens.weight", "embedding.words"},
                                                              {"*.shared_head.head.weight", "output.words"}}};
inline constexpr std::array<HubWrapper, 6> gpt_wrappers{{{"llama4", "llama4_text"},
                                                         {"kimi_k25", "deepseek_v3"},
                                                         {"qwen3_5", "qwen3_5_text"},
                                                         {"qwen3_5_moe", "qwen3_5_moe_text"},
                                                         {"mistral3", "mistral"},
                                                         {"gemma3", "gemma3_text"}}};

}  // namespace weft
