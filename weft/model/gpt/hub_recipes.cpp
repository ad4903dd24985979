// Two ways of naming, and what both share.
#include "weft/base/error.h"
#include "weft/model/gpt/hub_cook.h"

namespace weft {

std::vector<Recipe> GptCook::all() {
  if (m_.hybrid.on()) return has_states(type_) && type_ != GptType::mamba2 ? in_pairs() : hybrid();
  if (has_layer_norms(type_)) return beside();
  if (has_learned_places(type_)) return learned();
  same("embedding.words", "model.embed_tokens.weight");
  for (int layer = 0; layer < m_.layers; ++layer) llama_layer(layer);
  norm("final_norm", "model.norm");
  further_tokens();
  return finished();
}

// Where a norm stands is said in four names, which not all use alike.
void GptCook::norms_of(const std::string& ours, const std::string& theirs) {
  const bool glm = type_ == GptType::glm4, behind = m_.norm_places == NormPlaces::behind,
             around = m_.norm_places == NormPlaces::around;
  if (!behind) {
    norm(ours + ".attention_norm", theirs + ".input_layernorm");
    norm(ours + ".mlp_norm",
         theirs + (around && !glm ? ".pre_feedforward_layernorm" : ".post_attention_layernorm"));
  }
  if (!behind && !around) return;
  norm(ours + ".attention_norm_behind",
       theirs + (glm ? ".post_self_attn_layernorm" : ".post_attention_layernorm"));
  norm(ours + ".mlp_norm_behind", theirs + (glm ? ".post_mlp_layernorm" : ".post_feedforward_layernorm"));
}

std::vector<Recipe> GptCook::finished() {
  const std::string head = type_ == GptType::gpt_neox ? "embed_out" : "lm_head";
  if (list_.has("output.words")) same("output.words", head + ".weight");
  if (list_.has("output.bias")) same("output.bias", head + ".bias");
  if (out_.size() != list_.all().size())
    fail(Kind::internal, "exchange: ", out_.size(), " recipes for a model of ", list_.all().size(),
         " parameters");
  return std::move(out_);
}

void GptCook::same(const std::string& ours, std::string theirs, double plus) {
  const Shape& shape = shape_of(ours);
  out_.push_back({ours, shape, {{std::move(theirs), shape}}, {{0, 0, 0, shape[0]}}, plus});
}

void GptCook::norm(const std::string& ours, const std::string& theirs) {
  if (!list_.has(ours + ".gain")) return;
  same(ours + ".gain", theirs + ".weight", plus_);
  if (list_.has(ours + ".bias")) same(ours + ".bias", theirs + ".bias");
}

Recipe GptCook::matrix(const std::string& ours, const std::string& theirs) const {
  const Shape& shape = shape_of(ours);
  const Shape stored = gpt2_ ? Shape{shape[1], shape[0]} : shape;
  return {ours, shape, {{theirs, stored, gpt2_}}, {{0, 0, 0, shape[0]}}};
}

void GptCook::linear(const std::string& ours, const std::string& theirs) {
  out_.push_back(matrix(ours + ".weight", theirs + ".weight"));
  if (list_.has(ours + ".bias")) same(ours + ".bias", theirs + ".bias");
}

void GptCook::llama_layer(int layer) {
  const std::string ours = "layers." + std::to_string(layer);
  const std::string theirs = "model.layers." + std::to_string(layer);
  layer_of(ours, theirs);
}

void GptCook::layer_of(const std::string& ours, const std::string& theirs) {
  norms_of(ours, theirs);
  if (list_.has(ours + ".delta.in.weight"))
    delta(ours + ".delta", theirs + ".linear_attn");
  else if (m_.latent.on)
    latent_attention(ours + ".attention", theirs + ".self_attn");
  else
    attention(ours + ".attention", theirs + ".self_attn");
  if (list_.has(ours + ".attention.project.weight"))
    linear(ours + ".attention.project", theirs + ".self_attn.o_proj");
  if (list_.has(ours + ".attention.sinks")) same(ours + ".attention.sinks", theirs + ".self_attn.sinks");
  const bool mixed = list_.has(ours + ".router.weight");
  if (type_ == GptType::llama4_text)
    mixed ? experts_of_llama4(ours, theirs + ".feed_forward") : mlp(ours + ".mlp", theirs + ".feed_forward");
  else if (is_granite_mixture(type_))
    experts_of_granite(ours, theirs);
  else if (type_ == GptType::gpt_oss)
    stacked_experts(ours, theirs + ".mlp");
  else if (mixed)
    experts(ours, theirs + (names_as_mixtral(type_) ? ".block_sparse_moe" : ".mlp"));
  else
    mlp(ours + ".mlp", theirs + ".mlp");
}

void GptCook::attention(const std::string& ours, const std::string& theirs) {
  if (type_ == GptType::phi3) return attend_in_one(ours + ".qkv", theirs + ".qkv_proj");
  attend(ours + ".qkv", theirs, ".weight");
  if (list_.has(ours + ".qkv.bias")) attend(ours + ".qkv", theirs, ".bias");
  if (!list_.has(ours + ".q_norm.gain")) return;
  const bool by_words = is_hunyuan(type_);
  head_norm(ours + ".q_norm", theirs + (by_words ? ".query_layernorm" : ".q_norm"));
  head_norm(ours + ".k_norm", theirs + (by_words ? ".key_layernorm" : ".k_norm"));
}

void GptCook::latent_attention(const std::string& ours, const std::string& theirs) {
  if (list_.has(ours + ".query.weight")) {
    linear(ours + ".query", theirs + ".q_proj");
  } else {
    linear(ours + ".query_down", theirs + ".q_a_proj");
    norm(ours + ".query_norm", theirs + ".q_a_layernorm");
    linear(ours + ".query_up", theirs + ".q_b_proj");
  }
  linear(ours + ".key_value_down", theirs + ".kv_a_proj_with_mqa");
  norm(ours + ".key_value_norm", theirs + ".kv_a_layernorm");
  linear(ours + ".key_value_up", theirs + ".kv_b_proj");
}

void GptCook::mlp(const std::string& ours, const std::string& theirs) {
  if (!m_.gated) {
    linear(ours + ".up", theirs + ".up_proj");
    return linear(ours + ".down", theirs + ".down_proj");
  }
  if (type_ == GptType::phi3 || type_ == GptType::glm4 || type_ == GptType::glm) {
    linear(ours + ".up", theirs + ".gate_up_proj");
    return linear(ours + ".down", theirs + ".down_proj");
  }
  widen(ours + ".up", theirs, ".weight");
  if (list_.has(ours + ".up.bias")) widen(ours + ".up", theirs, ".bias");
  linear(ours + ".down", theirs + ".down_proj");
}

void GptCook::further_tokens() {
  for (int depth = 0; depth < m_.ahead.depths; ++depth) {
    const std::string ours = "ahead.layers." + std::to_string(depth);
    const std::string theirs = "model.layers." + std::to_string(m_.layers + depth);
    norm(ours + ".word_norm", theirs + ".enorm");
    norm(ours + ".hidden_norm", theirs + ".hnorm");
    linear(ours + ".join", theirs + ".eh_proj");
    layer_of(ours, theirs);
    norm(ours + ".final_norm", theirs + ".shared_head.norm");
  }
}

void GptCook::attend(const std::string& ours, const std::string& theirs, const std::string& what) {
  const std::int64_t q = m_.heads * of_a_query(), kv = m_.groups * m_.channels;
  const Shape& shape = shape_of(ours + what);
  Recipe recipe{ours + what,
                shape,
                {{theirs + ".q_proj" + what, rows_of(shape, q)},
                 {theirs + ".k_proj" + what, rows_of(shape, kv)},
                 {theirs + ".v_proj" + what, rows_of(shape, kv)}},
                groups({0, 1, 2}, {0, 0, 0})};
  out_.push_back(std::move(recipe));
}

// Of a GPT-BigCode whose heads have keys of their own, each head's three stand together.
void GptCook::attend_in_one(const std::string& ours, const std::string& theirs) {
  const std::int64_t q = m_.heads * m_.channels, kv = m_.groups * m_.channels;
  const bool by_heads = type_ == GptType::gpt_bigcode && m_.groups > 1;
  const std::size_t first = out_.size();
  linear(ours, theirs);
  for (std::size_t i = first; i < out_.size(); ++i)
    out_[i].runs = by_heads ? in_groups() : groups({0, 0, 0}, {0, q, q + kv});
}

void GptCook::widen(const std::string& ours, const std::string& theirs, const std::string& what) {
  two_halves(ours + what, theirs + ".gate_proj" + what, theirs + ".up_proj" + what);
}

void GptCook::two_halves(const std::string& ours, std::string above, std::string below) {
  const Shape& shape = shape_of(ours);
  const std::int64_t f = shape[0] / 2;
  out_.push_back({ours,
                  shape,
                  {{std::move(above), rows_of(shape, f)}, {std::move(below), rows_of(shape, f)}},
                  {{0, 0, 0, f}, {1, 0, f, f}}});
}

void GptCook::head_norm(const std::string& ours, const std::string& theirs) {
  const Shape& shape = shape_of(ours + ".gain");
  Recipe recipe{ours + ".gain", shape, {{theirs + ".weight", shape}}, {}, plus_};
  for (std::int64_t at = 0; at < shape[0]; at += m_.channels) turning(recipe.runs, 0, at, at);
  out_.push_back(recipe);
  if (!list_.has(ours + ".bias")) return;
  out_.push_back({ours + ".bias", shape, {{theirs + ".bias", shape}}, std::move(recipe.runs)});
}

// One head's channels that turn, pair by pair: of a pair the two stand next to each other, or half of what
// turns apart, here and there.
void GptCook::turning(std::vector<RowRun>& runs, std::size_t part, std::int64_t from, std::int64_t to) const {
  const bool ours = m_.rotary.interleaved, theirs = stores_neighbors(type_);
  const bool sorted = m_.positions == Positions::rotary && ours != theirs;
  const std::int64_t d = m_.channels;
  const std::int64_t turn = sorted ? turned_channels(m_) : 0;
  for (std::int64_t i = 0; i < turn; ++i) {
    const std::int64_t pair = ours ? i / 2 : i % (turn / 2), second = ours ? i % 2 : i / (turn / 2);
    runs.push_back({part, from + (theirs ? 2 * pair + second : pair + second * (turn / 2)), to + i, 1});
  }
  if (turn < d) runs.push_back({part, from + turn, to + turn, d - turn});
}

std::vector<RowRun> GptCook::groups(const std::array<std::size_t, 3>& part,
                                    const std::array<std::int64_t, 3>& first) const {
  const std::int64_t d = m_.channels, per_group = m_.heads / m_.groups;
  std::vector<RowRun> runs;
  std::int64_t to = 0;
  for (std::int64_t g = 0; g < m_.groups; ++g) {
    for (std::int64_t q = 0; q < per_group; ++q, to += d)
      turning(runs, part[0], first[0] + (g * per_group + q) * of_a_query(), to);
    for (std::int64_t q = 0; m_.attention_gate && q < per_group; ++q, to += d)
      runs.push_back({part[0], first[0] + (g * per_group + q) * of_a_query() + d, to, d});
    turning(runs, part[1], first[1] + g * d, to);
    to += d;
    runs.push_back({part[2], first[2] + g * d, to, d});
    to += d;
  }
  return runs;
}

std::vector<Recipe> gpt_recipes(const ModelConfig& model, std::string_view type) {
  return GptCook(model, gpt_type(type)).all();
}

// Causal masks of GPT-2 and the angles' frequencies.
bool is_known_gpt_table(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

// What makes further tokens, and what sees pictures: transformers' models of text do not make them either.
bool is_unmade_part_of_gpt(std::string_view type, std::string_view name) {
  const GptType known = gpt_type(type);
  if (known == GptType::nemotron_h) return name.starts_with("mtp.");
  return remembers(known) && (name.starts_with("mtp.") || name.starts_with("model.visual."));
}

}  // namespace weft
