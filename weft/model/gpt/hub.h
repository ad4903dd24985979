// How GPTs are read from Hugging Face's settings, and written in them.
#pragma once

#include "weft/model/gpt/hub_types.h"

namespace weft {

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
/// Ministral 3: how queries grow, of what it says of its angles, and what goes without saying of those.
void read_ministral3(ModelConfig& model, HubSettings& settings);
nlohmann::json usual_angles_of_ministral3();
/// GPT-2, GPT-BigCode, GPT-Neo and OPT.
void read_learned(ModelConfig& model, GptType type, HubSettings& settings);
/// GPT-NeoX, GPT-J, Phi, Falcon, Cohere, StableLM, through read_falling BLOOM and MPT, and through
/// read_serial StarCoder 2 and Nemotron.
void read_beside(ModelConfig& model, GptType type, HubSettings& settings);
void read_serial(ModelConfig& model, GptType type, HubSettings& settings);
void read_falling(ModelConfig& model, GptType type, HubSettings& settings);
/// Mamba 2, Bamba and Granite 4.
void read_states(ModelConfig& model, GptType type, HubSettings& settings);
/// Hunyuan: angles that are turned by a base of their own, experts, and what is of other programs.
void read_hunyuan(ModelConfig& model, HubSettings& settings);
void read_experts_of_hunyuan(ModelConfig& model, HubSettings& settings);
void stretch_base(RotaryConfig& rotary, std::int64_t channels, HubSettings& settings);
/// OLMo 1: all of it but sizes and angles.
void read_olmo(ModelConfig& model, HubSettings& settings);
/// A limit of queries, keys and values; none: 0.
double read_hub_limit(HubSettings& settings);
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
/// Queries of all layers grow, and why Ministral 3, which has that, is not such a model.
bool is_ministral3(const ModelConfig& model);
std::string_view no_ministral3(const ModelConfig& model);
/// Norms of queries and keys stand behind turning, and why no Hunyuan, which has them so, is such a model.
std::string_view no_hunyuan(const ModelConfig& model);
/// Norms have no gains, and why OLMo 1, which has such, is no such model.
std::string_view no_olmo1(const ModelConfig& model);
/// What few types have, and `type` has not; empty where it has all.
std::string_view no_such_details(const ModelConfig& model, GptType type);
/// Attention has all biases, and MLPs have none.
bool biases_attention_alone(const ModelConfig& model);
/// Granite's experts.
bool is_granite_mixture(const ModelConfig& model);
/// Of a model whose places have a table, why none is such a one.
std::string_view no_learned(const ModelConfig& model);
GptType type_of_learned(const ModelConfig& model);
/// What only these have, or all that one of them has, and why none is such a model.
bool is_beside(const ModelConfig& model);
/// The same of StarCoder 2 and of Nemotron.
std::string_view no_serial(const ModelConfig& model, GptType type);
/// And of BLOOM and MPT.
std::string_view no_falling(const ModelConfig& model, GptType type);
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
void write_ministral3(nlohmann::ordered_json& out, const ModelConfig& model);
void write_llama4(nlohmann::ordered_json& out, const ModelConfig& model);
nlohmann::ordered_json nemotron_h_json(const ModelConfig& model);
nlohmann::ordered_json states_json(const ModelConfig& model, GptType type);
void write_serial(nlohmann::ordered_json& out, const ModelConfig& model, GptType type);
void write_hub_window(nlohmann::ordered_json& out, const ModelConfig& model, GptType type);
nlohmann::ordered_json beside_json(const ModelConfig& model, GptType type);
nlohmann::ordered_json falling_json(const ModelConfig& model, GptType type);
nlohmann::ordered_json learned_json(const ModelConfig& model, GptType type);
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
