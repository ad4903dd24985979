// The types of GPTs among Hugging Face's models.
#pragma once

#include <array>

#include "weft/model/hub.h"

namespace weft {

enum class GptType : std::uint8_t {
  gpt2,
  gpt_neox,
  gptj,
  phi,
  falcon,
  cohere,
  cohere2,
  starcoder2,
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
  qwen3_5_text,
  mixtral,
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
  kimi_k2
};
inline constexpr std::array<std::string_view, 46> gpt_types{
    "gpt2",       "gpt_neox",    "gptj",        "phi",         "falcon",   "cohere",     "cohere2",
    "starcoder2", "nemotron",    "llama",       "mistral",     "qwen2",    "qwen3",      "gemma",
    "gemma2",     "gemma3_text", "phi3",        "smollm3",     "olmo2",    "olmo3",      "exaone4",
    "glm4",       "granite",     "glm",         "arcee",       "seed_oss", "ernie4_5",   "qwen3_5_text",
    "mixtral",    "qwen2_moe",   "qwen3_moe",   "olmoe",       "gpt_oss",  "qwen3_next", "qwen3_5_moe_text",
    "glm4_moe",   "dots1",       "minimax_m2",  "llama4_text", "mamba2",   "bamba",      "granitemoehybrid",
    "nemotron_h", "deepseek_v3", "deepseek_v2", "kimi_k2"};
/// What transformers calls a type's class, and what goes without saying there.
struct GptWays {
  std::string_view class_name;
  double base = 10000, epsilon = 1e-6;
  bool tied = false;
};
inline constexpr std::array<GptWays, gpt_types.size()> gpt_ways{
    {{"GPT2LMHeadModel"},
     {"GPTNeoXForCausalLM"},
     {"GPTJForCausalLM"},
     {"PhiForCausalLM"},
     {.class_name = "FalconForCausalLM", .tied = true},
     {.class_name = "CohereForCausalLM", .base = 500000, .tied = true},
     {.class_name = "Cohere2ForCausalLM", .tied = true},
     {.class_name = "Starcoder2ForCausalLM", .tied = true},
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
     {"Qwen3_5ForCausalLM"},
     {.class_name = "MixtralForCausalLM", .base = 1e6, .epsilon = 1e-5},
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
     {"DeepseekV3ForCausalLM"}}};
constexpr const GptWays& ways_of(GptType type) { return gpt_ways[std::size_t(type)]; }
/// Norms are layer norms; attention and MLPs may read the same.
constexpr bool has_layer_norms(GptType type) {
  return type >= GptType::gpt_neox && type <= GptType::nemotron;
}
/// Both behind one norm without a bias, and gated MLPs.
constexpr bool is_cohere(GptType type) { return type == GptType::cohere || type == GptType::cohere2; }
/// Of these, those whose attention and MLPs never stand beside each other.
constexpr bool stands_serially(GptType type) {
  return type == GptType::starcoder2 || type == GptType::nemotron;
}
/// State spaces, beside which some layers attend.
constexpr bool has_states(GptType type) {
  return type >= GptType::mamba2 && type <= GptType::granitemoehybrid;
}
/// Those whose layers have experts, or may.
constexpr bool has_experts(GptType type) { return type >= GptType::mixtral; }
/// Experts in Mixtral's words: their number is local, and their width that of an MLP.
constexpr bool says_as_mixtral(GptType type) {
  return type == GptType::mixtral || type == GptType::gpt_oss || type == GptType::minimax_m2;
}
/// And in Mixtral's names.
constexpr bool names_as_mixtral(GptType type) {
  return type == GptType::mixtral || type == GptType::minimax_m2;
}
/// Kimi K2 is one under another name.
constexpr bool is_deepseek_v3(GptType type) {
  return type == GptType::deepseek_v3 || type == GptType::kimi_k2;
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
         type == GptType::phi || type == GptType::nemotron || type == GptType::bamba;
}
/// Looks through one window in all layers, or in those that a list names.
constexpr bool slides_everywhere(GptType type) {
  return type == GptType::mistral || type == GptType::mixtral || type == GptType::phi3 ||
         type == GptType::starcoder2;
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
GptType gpt_type(std::string_view word);

/// Sizes in the words of GPT-2 and GPT-J, and what else these have in common.
void read_hub_n_sizes(ModelConfig& model, HubSettings& settings);
/// What layers of one kind are called among those that see everything, and which words there are.
struct LayerWord {
  std::string_view word, known;
};
/// One 0 or 1 a layer: which of a list have that word.
std::vector<int> read_hub_listed_layers(const nlohmann::json& types, int layers, const LayerWord& some,
                                        HubSettings& settings);
/// Which layers look through a window; of some types, which of them turn nothing.
void read_hub_window(ModelConfig& model, GptType type, HubSettings& settings);
/// Bases, scaling, and which channels and layers turn.
void read_hub_rotary(ModelConfig& model, GptType type, HubSettings& settings);
constexpr bool turns_in(const RotaryConfig& rotary, int layer) {
  return rotary.skip_layers.empty() || rotary.skip_layers[std::size_t(layer)] == 0;
}
/// What such a type says of its experts; layers and widths are read already.
void read_hub_experts(ModelConfig& model, GptType type, HubSettings& settings);
/// Latent attention and the rest of DeepSeek's settings.
void read_hub_latent(ModelConfig& model, HubSettings& settings);
/// gpt-oss: sinks, and what its gates do.
void read_hub_gates(ModelConfig& model, HubSettings& settings);
/// Qwen3-Next and Qwen 3.5: layers that remember, gates, norms and the part of each head that turns.
void read_hub_delta(ModelConfig& model, GptType type, HubSettings& settings);
/// Llama 4: what it has beside attention as Llama's.
void read_llama4(ModelConfig& model, HubSettings& settings);
/// GPT-NeoX, GPT-J, Phi, Falcon, Cohere, and through read_serial StarCoder 2 and Nemotron.
void read_serial(ModelConfig& model, GptType type, HubSettings& settings);
void read_beside(ModelConfig& model, GptType type, HubSettings& settings);
/// Mamba 2, Bamba and Granite 4.
void read_states(ModelConfig& model, GptType type, HubSettings& settings);
/// Granite's multipliers.
void read_granite(ModelConfig& model, HubSettings& settings);
/// A letter for each word of a list of layers; empty where there is none.
std::string read_hub_layer_words(const char* name, HubSettings& settings);
/// Times of state spaces have no limits.
void check_hub_times(HubSettings& settings);
/// Nemotron-H: all of it, since its layers are one thing each.
void read_nemotron_h(ModelConfig& model, HubSettings& settings);
/// Groups of experts that are compared by their best so many.
void read_hub_groups(RouterConfig& router, int best, HubSettings& settings);
/// The weights of the chosen are divided by their sum, but that of one alone is not.
void check_hub_weights(const RouterConfig& router, HubSettings& settings);
/// Whether any layer looks through a window, and whether all do.
bool has_window(const ModelConfig& model);
bool all_windowed(const ModelConfig& model);
/// Where the part of a head that turns is said as a number of channels.
double percent_that_turns(std::int64_t turned, std::int64_t channels);
/// Whether a part of each head turns, and whether some layers turn nothing.
bool turns_a_part(const ModelConfig& model);
bool skips(const ModelConfig& model);
/// Whether layers that look through a window turn, and the others do not.
bool slides_where_it_turns(const ModelConfig& model);
/// Whether scores are scaled otherwise than by their channels.
bool scales_scores(const ModelConfig& model);
/// Angles of layers that look through a window are dropped where they are those of the others.
void drop_idle_angles(ModelConfig& model);
/// Why no type that weft writes has norms there; empty where type_of_norms has them.
std::string_view no_norms_elsewhere(const ModelConfig& model);
GptType type_of_norms(const ModelConfig& model);
/// Scores or logits have caps.
bool has_caps(const ModelConfig& model);
/// Embeddings are multiplied by the root of their width.
bool multiplies_as_gemma(const ModelConfig& model);
/// Whether embeddings, scores, logits or what layers add are multiplied, and why Granite does not do so.
bool has_multipliers(const ModelConfig& model);
std::string_view no_granite(const ModelConfig& model);
/// Settings of layers whose norms stand elsewhere, and of Granite.
void write_hub_norms(nlohmann::ordered_json& out, const ModelConfig& model, GptType type);
/// Why no type that weft writes has these experts; empty where `type` has them.
std::string_view no_such_experts(const ModelConfig& model, GptType type);
/// Norms without gains, chunks, queries that grow, or weights of what experts read, and why Llama 4, which
/// has them, is not such a model.
bool is_llama4(const ModelConfig& model);
std::string_view no_llama4(const ModelConfig& model);
/// What only these have, or all that one of them has, and why none is such a model.
bool is_beside(const ModelConfig& model);
/// The same of StarCoder 2 and of Nemotron.
std::string_view no_serial(const ModelConfig& model, GptType type);
std::string_view no_beside(const ModelConfig& model);
GptType type_of_beside(const ModelConfig& model);
/// The same of models whose layers are one thing each, which are no Nemotron-H.
bool is_states(const ModelConfig& model);
std::string_view no_states(const ModelConfig& model);
GptType type_of_states(const ModelConfig& model);
/// Experts that are chosen by sigmoids, behind attention that is not latent.
bool has_glm_experts(const ModelConfig& model);
/// The same of such a model, which GLM-4.5 alone is.
std::string_view no_glm4_moe(const ModelConfig& model);
/// The same of a model with attention sinks, which gpt-oss alone has.
std::string_view no_gpt_oss(const ModelConfig& model);
/// The same of a model with layers that remember, which Qwen3-Next and Qwen 3.5 alone have.
std::string_view no_qwen3_next(const ModelConfig& model);
/// The same of a model whose layers are one thing each, which Nemotron-H alone has.
std::string_view no_nemotron_h(const ModelConfig& model);
GptType type_of_experts(const ModelConfig& model);
void write_hub_experts(nlohmann::ordered_json& out, const ModelConfig& model, GptType type);
void write_hub_latent(nlohmann::ordered_json& out, const ModelConfig& model, GptType type);
void write_hub_delta(nlohmann::ordered_json& out, const ModelConfig& model);
void write_llama4(nlohmann::ordered_json& out, const ModelConfig& model);
nlohmann::ordered_json nemotron_h_json(const ModelConfig& model);
nlohmann::ordered_json states_json(const ModelConfig& model, GptType type);
void write_serial(nlohmann::ordered_json& out, const ModelConfig& model, GptType type);
void write_hub_window(nlohmann::ordered_json& out, const ModelConfig& model, GptType type);
nlohmann::ordered_json beside_json(const ModelConfig& model, GptType type);
nlohmann::ordered_json activation_word(const ModelConfig& model);
void write_hub_rotary(nlohmann::ordered_json& out, const RotaryConfig& rotary);
/// Of a state space, where rows of our product, and of our filters, stand among theirs.
std::vector<RowRun> state_in_runs(const MemoryShape& shape);
std::vector<RowRun> state_filter_runs(const MemoryShape& shape);

void read_gpt(ModelConfig& model, HubSettings& settings, std::string_view type);
std::string_view type_for_gpt(const ModelConfig& model);
nlohmann::ordered_json write_gpt(const ModelConfig& model, std::string_view type);
std::vector<Recipe> gpt_recipes(const ModelConfig& model, std::string_view type);
bool is_known_gpt_table(std::string_view their_name);
bool is_unmade_part_of_gpt(std::string_view type, std::string_view their_name);
ModelConfig plain_gpt(ModelConfig model);
/// What stands under "language_model" there, wherever that stands.
std::string text_name_of_gpt(std::string_view their_name);
/// Nemotron-H and mixtures of experts are stored in more than one way.
std::vector<Theirs> other_ways_of_gpt(const ModelConfig& model, const Theirs& theirs);
/// And says that it guesses further tokens where its files have nothing to guess them by.
void settle_gpt(ModelConfig& model, const IsStored& stored);

}  // namespace weft
