// Two ways of naming, and what both share: our rows are [group][queries, key, value] and [gate | up].
#include <array>

#include "weft/base/error.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/gpt/hub.h"
#include "weft/model/layer_parts.h"
#include "weft/model/parameters.h"

namespace weft {
namespace {

class Cook {
 public:
  Cook(const ModelConfig& model, GptType type)
      : type_(type), gpt2_(type == GptType::gpt2), m_(model), list_(gpt_parameters(model)) {
    plus_ = (m_.norm_centered_gain ? 1 : 0) - (centers_gains(type) ? 1 : 0);
  }

  std::vector<Recipe> all() {
    if (m_.hybrid.on()) return hybrid();
    same("embedding.words", gpt2_ ? "transformer.wte.weight" : "model.embed_tokens.weight");
    if (list_.has("embedding.positions")) same("embedding.positions", "transformer.wpe.weight");
    for (int layer = 0; layer < m_.layers; ++layer) gpt2_ ? gpt2_layer(layer) : llama_layer(layer);
    norm("final_norm", gpt2_ ? "transformer.ln_f" : "model.norm");
    further_tokens();
    return finished();
  }

 private:
  std::vector<Recipe> finished() {
    if (list_.has("output.words")) same("output.words", "lm_head.weight");
    if (out_.size() != list_.all().size())
      fail(Kind::internal, "exchange: ", out_.size(), " recipes for a model of ", list_.all().size(),
           " parameters");
    return std::move(out_);
  }
  const Shape& shape_of(const std::string& ours) const { return list_.at(ours).shape; }
  void same(const std::string& ours, std::string theirs, double plus = 0) {
    const Shape& shape = shape_of(ours);
    out_.push_back({ours, shape, {{std::move(theirs), shape}}, {{0, 0, 0, shape[0]}}, plus});
  }
  void norm(const std::string& ours, const std::string& theirs) {
    same(ours + ".gain", theirs + ".weight", plus_);
    if (list_.has(ours + ".bias")) same(ours + ".bias", theirs + ".bias");
  }
  // W [rows, columns], which GPT-2 stores the other way round.
  Recipe matrix(const std::string& ours, const std::string& theirs) const {
    const Shape& shape = shape_of(ours);
    const Shape stored = gpt2_ ? Shape{shape[1], shape[0]} : shape;
    return {ours, shape, {{theirs, stored, gpt2_}}, {{0, 0, 0, shape[0]}}};
  }
  void linear(const std::string& ours, const std::string& theirs) {
    out_.push_back(matrix(ours + ".weight", theirs + ".weight"));
    if (list_.has(ours + ".bias")) same(ours + ".bias", theirs + ".bias");
  }

  void gpt2_layer(int layer) {
    const std::string ours = "layers." + std::to_string(layer);
    const std::string theirs = "transformer.h." + std::to_string(layer);
    const std::int64_t h = m_.hidden;
    norm(ours + ".attention_norm", theirs + ".ln_1");
    linear(ours + ".attention.qkv", theirs + ".attn.c_attn");
    for (Recipe* recipe : {&out_.back(), &out_.back() - 1}) recipe->runs = groups({0, 0, 0}, {0, h, 2 * h});
    linear(ours + ".attention.project", theirs + ".attn.c_proj");
    norm(ours + ".mlp_norm", theirs + ".ln_2");
    linear(ours + ".mlp.up", theirs + ".mlp.c_fc");
    linear(ours + ".mlp.down", theirs + ".mlp.c_proj");
  }

  void llama_layer(int layer) {
    const std::string ours = "layers." + std::to_string(layer);
    const std::string theirs = "model.layers." + std::to_string(layer);
    layer_of(ours, theirs);
  }
  /// Attention and an MLP, or experts, of any layer that is made so.
  void layer_of(const std::string& ours, const std::string& theirs) {
    norm(ours + ".attention_norm", theirs + ".input_layernorm");
    if (list_.has(ours + ".delta.in.weight"))
      delta(ours + ".delta", theirs + ".linear_attn");
    else if (m_.latent.on)
      latent_attention(ours + ".attention", theirs + ".self_attn");
    else
      attention(ours + ".attention", theirs + ".self_attn");
    if (list_.has(ours + ".attention.project.weight"))
      linear(ours + ".attention.project", theirs + ".self_attn.o_proj");
    if (list_.has(ours + ".attention.sinks")) same(ours + ".attention.sinks", theirs + ".self_attn.sinks");
    norm(ours + ".mlp_norm", theirs + ".post_attention_layernorm");
    if (type_ == GptType::gpt_oss)
      stacked_experts(ours, theirs + ".mlp");
    else if (list_.has(ours + ".router.weight"))
      experts(ours, theirs + (type_ == GptType::mixtral ? ".block_sparse_moe" : ".mlp"));
    else
      mlp(ours + ".mlp", theirs + ".mlp");
  }
  /// A layer that remembers: filters of all heads' queries, of their keys and of their values stand behind
  /// each other.
  void delta(const std::string& ours, const std::string& theirs) {
    const MemoryShape d = m_.delta.shape();
    type_ == GptType::qwen3_next ? made_in_two(ours + ".in.weight", theirs)
                                 : made_in_four(ours + ".in.weight", theirs);
    Recipe filter{ours + ".filter",
                  shape_of(ours + ".filter"),
                  {{theirs + ".conv1d.weight", {d.keys * d.filtered(), 1, m_.delta.taps}}},
                  {}};
    for (std::int64_t head = 0; head < d.keys; ++head) filtered(filter.runs, head, head * d.filtered());
    out_.push_back(std::move(filter));
    same(ours + ".speed", theirs + ".A_log");
    same(ours + ".shift", theirs + ".dt_bias");
    same(ours + ".norm.gain", theirs + ".norm.weight");  // never around zero
    linear(ours + ".project", theirs + ".out_proj");
  }
  /// Of each key head queries, keys, values and gates in one tensor, rates and decays in another.
  void made_in_two(const std::string& ours, const std::string& theirs) {
    const MemoryShape d = m_.delta.shape();
    const std::int64_t few = 2 * d.per_key, main = d.width() - few;
    Recipe recipe{ours,
                  shape_of(ours),
                  {{theirs + ".in_proj_qkvz.weight", {d.keys * main, m_.hidden}},
                   {theirs + ".in_proj_ba.weight", {d.keys * few, m_.hidden}}},
                  {}};
    for (std::int64_t head = 0; head < d.keys; ++head) {
      const std::int64_t to = head * d.width();
      recipe.runs.push_back({0, head * main, to, main});
      recipe.runs.push_back({1, head * few, to + main, few});
    }
    out_.push_back(std::move(recipe));
  }
  /// What filters read as they have it, then all heads' gates, rates and decays, each in a tensor.
  void made_in_four(const std::string& ours, const std::string& theirs) {
    const MemoryShape d = m_.delta.shape();
    const std::int64_t each = d.per_key, values = d.values();
    Recipe recipe{ours,
                  shape_of(ours),
                  {{theirs + ".in_proj_qkv.weight", {d.keys * d.filtered(), m_.hidden}},
                   {theirs + ".in_proj_z.weight", {d.keys * values, m_.hidden}},
                   {theirs + ".in_proj_b.weight", {d.keys * each, m_.hidden}},
                   {theirs + ".in_proj_a.weight", {d.keys * each, m_.hidden}}},
                  {}};
    for (std::int64_t head = 0; head < d.keys; ++head) {
      const std::int64_t to = head * d.width(), gates = to + d.filtered();
      filtered(recipe.runs, head, to);
      recipe.runs.push_back({1, head * values, gates, values});
      recipe.runs.push_back({2, head * each, gates + values, each});
      recipe.runs.push_back({3, head * each, gates + values + each, each});
    }
    out_.push_back(std::move(recipe));
  }
  /// A key head's query, key and values, out of all queries, all keys and all values.
  void filtered(std::vector<RowRun>& runs, std::int64_t head, std::int64_t to) const {
    const MemoryShape d = m_.delta.shape();
    const std::int64_t key = d.channels, values = d.values();
    const std::int64_t all_keys = d.keys * key;
    runs.push_back({0, head * key, to, key});
    runs.push_back({0, all_keys + head * key, to + key, key});
    runs.push_back({0, 2 * all_keys + head * values, to + 2 * key, values});
  }
  void attention(const std::string& ours, const std::string& theirs) {
    attend(ours + ".qkv", theirs, ".weight");
    if (list_.has(ours + ".qkv.bias")) attend(ours + ".qkv", theirs, ".bias");
    if (!list_.has(ours + ".q_norm.gain")) return;
    head_norm(ours + ".q_norm", theirs + ".q_norm");
    head_norm(ours + ".k_norm", theirs + ".k_norm");
  }
  void latent_attention(const std::string& ours, const std::string& theirs) {
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
  void mlp(const std::string& ours, const std::string& theirs) {
    if (!m_.gated) {
      linear(ours + ".up", theirs + ".up_proj");
      return linear(ours + ".down", theirs + ".down_proj");
    }
    widen(ours + ".up", theirs, ".weight");
    if (list_.has(ours + ".up.bias")) widen(ours + ".up", theirs, ".bias");
    linear(ours + ".down", theirs + ".down_proj");
  }
  void experts(const std::string& ours, const std::string& theirs) {
    linear(ours + ".router", theirs + ".gate");
    if (list_.has(ours + ".router.expert_bias")) {
      same(ours + ".router.expert_bias", theirs + ".gate.e_score_correction_bias");
      out_.back().parts.front().always_f32 = true;
    }
    for (int e = 0; e < m_.experts.count; ++e)
      expert(ours + ".experts." + std::to_string(e), theirs + ".experts." + std::to_string(e));
    if (list_.has(ours + ".latent.in.weight")) {
      linear(ours + ".latent.in", theirs + ".fc1_latent_proj");
      linear(ours + ".latent.out", theirs + ".fc2_latent_proj");
    }
    if (!list_.has(ours + ".shared.up.weight")) return;
    mlp(ours + ".shared", theirs + (has_shared_gate(type_) ? ".shared_expert" : ".shared_experts"));
    if (list_.has(ours + ".shared.gate.weight"))
      linear(ours + ".shared.gate", theirs + ".shared_expert_gate");
  }
  void expert(const std::string& ours, const std::string& theirs) {
    if (type_ != GptType::mixtral) return mlp(ours, theirs);
    two_halves(ours + ".up.weight", theirs + ".w1.weight", theirs + ".w3.weight");
    linear(ours + ".down", theirs + ".w2");
  }
  /// gpt-oss has one tensor for all experts of a layer, stored [in, out], with a row of the gate and one of
  /// what it lets through in turn.
  void stacked_experts(const std::string& ours, const std::string& theirs) {
    linear(ours + ".router", theirs + ".router");
    for (int e = 0; e < m_.experts.count; ++e) {
      const std::string expert = ours + ".experts." + std::to_string(e);
      for (const auto& [what, theirs_end] : {std::pair{".weight", ""}, std::pair{".bias", "_bias"}}) {
        stacked(expert + ".up" + what, theirs + ".experts.gate_up_proj" + theirs_end, e);
        const std::int64_t f = out_.back().shape[0] / 2;
        out_.back().runs = {{0, 0, 0, f, 2}, {0, 1, f, f, 2}};
        stacked(expert + ".down" + what, theirs + ".experts.down_proj" + theirs_end, e);
      }
    }
  }
  /// The e-th slab of a tensor, turned where it is a matrix.
  void stacked(const std::string& ours, std::string theirs, std::int64_t e) {
    const Shape& shape = shape_of(ours);
    const bool matrix = shape.rank() == 2;
    const Shape stored =
        matrix ? Shape{m_.experts.count, shape[1], shape[0]} : Shape{m_.experts.count, shape[0]};
    Theirs whole{std::move(theirs), stored, matrix};
    whole.slab = e;
    out_.push_back({ours, shape, {std::move(whole)}, {{0, 0, 0, shape[0]}}});
  }
  /// What DeepSeek-V3's files have behind the last layer, as layers of their own.
  void further_tokens() {
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

  /// Nemotron-H's names.
  std::vector<Recipe> hybrid() {
    same("embedding.words", "backbone.embeddings.weight");
    for (int layer = 0; layer < m_.layers; ++layer)
      part("layers." + std::to_string(layer), "backbone.layers." + std::to_string(layer), part_at(layer, 0));
    norm("final_norm", "backbone.norm_f");
    for (int depth = 0; depth < m_.ahead.depths; ++depth) further_parts(depth);
    return finished();
  }
  LayerPart part_at(int layer, std::size_t i) const { return parts_of_layer(m_, layer)[i]; }
  void part(const std::string& ours, const std::string& theirs, LayerPart what) {
    const std::string mixer = theirs + ".mixer";
    norm(ours + norm_name(what), theirs + ".norm");
    if (what == LayerPart::state) return state(ours + ".state", mixer);
    if (what == LayerPart::experts) return experts(ours, mixer);
    if (what == LayerPart::mlp) return mlp(ours + ".mlp", mixer);
    attention(ours + ".attention", mixer);
    linear(ours + ".attention.project", mixer + ".o_proj");
  }
  void state(const std::string& ours, const std::string& theirs) {
    const MemoryShape shape = m_.state.shape();
    linear(ours + ".in", theirs + ".in_proj");
    out_.back().runs = state_in_runs(shape);
    const std::int64_t rows = shape.keys * shape.filtered();
    out_.push_back({ours + ".filter",
                    shape_of(ours + ".filter"),
                    {{theirs + ".conv1d.weight", {rows, 1, m_.state.taps}}},
                    state_filter_runs(shape)});
    same(ours + ".filter_bias", theirs + ".conv1d.bias");
    out_.back().runs = state_filter_runs(shape);
    same(ours + ".speed", theirs + ".A_log");
    same(ours + ".shift", theirs + ".dt_bias");
    same(ours + ".skip", theirs + ".D");
    same(ours + ".norm.gain", theirs + ".norm.weight");  // never around zero
    linear(ours + ".project", theirs + ".out_proj");
  }
  /// A depth's parts are layers there, of which the first has what joins, and the last a norm behind it.
  void further_parts(int depth) {
    const std::string ours = "ahead.layers." + std::to_string(depth);
    const std::size_t parts = m_.hybrid.ahead.size();
    const auto layer = [&](std::size_t i) {
      return "mtp.layers." + std::to_string(std::size_t(depth) * parts + i);
    };
    norm(ours + ".word_norm", layer(0) + ".enorm");
    norm(ours + ".hidden_norm", layer(0) + ".hnorm");
    linear(ours + ".join", layer(0) + ".eh_proj");
    for (std::size_t i = 0; i < parts; ++i) part(ours, layer(i), part_at(m_.layers + depth, i));
    norm(ours + ".final_norm", layer(parts - 1) + ".final_layernorm");
  }

  /// As wide as a tensor of ours, with another number of rows.
  static Shape rows_of(const Shape& whole, std::int64_t rows) {
    Shape out = whole;
    out[0] = rows;
    return out;
  }
  void attend(const std::string& ours, const std::string& theirs, const std::string& what) {
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
  void widen(const std::string& ours, const std::string& theirs, const std::string& what) {
    two_halves(ours + what, theirs + ".gate_proj" + what, theirs + ".up_proj" + what);
  }
  /// Ours is theirs, one above the other.
  void two_halves(const std::string& ours, std::string above, std::string below) {
    const Shape& shape = shape_of(ours);
    const std::int64_t f = shape[0] / 2;
    out_.push_back({ours,
                    shape,
                    {{std::move(above), rows_of(shape, f)}, {std::move(below), rows_of(shape, f)}},
                    {{0, 0, 0, f}, {1, 0, f, f}}});
  }
  void head_norm(const std::string& ours, const std::string& theirs) {
    const Shape& shape = shape_of(ours + ".gain");
    Recipe recipe{ours + ".gain", shape, {{theirs + ".weight", shape}}, {}, plus_};
    for (std::int64_t at = 0; at < shape[0]; at += m_.channels) turning(recipe.runs, 0, at, at);
    out_.push_back(std::move(recipe));
  }

  // One head's channels. They turn the first half with the second; where we turn neighbors, our channels
  // 2i and 2i + 1 are their i and i + d/2.
  void turning(std::vector<RowRun>& runs, std::size_t part, std::int64_t from, std::int64_t to) const {
    const bool sorted = m_.positions == Positions::rotary && m_.rotary.interleaved;
    const std::int64_t d = m_.channels;
    const std::int64_t turn = sorted ? std::int64_t(double(d) * m_.rotary.percent) / 2 * 2 : 0;
    for (std::int64_t i = 0; i < turn; ++i)
      runs.push_back({part, from + i / 2 + i % 2 * (turn / 2), to + i, 1});
    if (turn < d) runs.push_back({part, from + turn, to + turn, d - turn});
  }
  /// Rows that a query has in their tensor, where a gate may follow it.
  std::int64_t of_a_query() const { return m_.channels * (m_.attention_gate ? 2 : 1); }
  // [group][queries, gates, key, value], each from its part, where queries, keys and values start at `first`.
  std::vector<RowRun> groups(const std::array<std::size_t, 3>& part,
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

  GptType type_;
  bool gpt2_;
  const ModelConfig& m_;
  ParameterList list_;
  double plus_ = 0;
  std::vector<Recipe> out_;
};

}  // namespace

std::vector<Recipe> gpt_recipes(const ModelConfig& model, std::string_view type) {
  return Cook(model, gpt_type(type)).all();
}

// Causal masks of GPT-2 and the angles' frequencies.
bool is_known_gpt_table(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

// What makes further tokens, and what sees pictures: transformers' models of text do not make them either.
bool is_unmade_part_of_gpt(std::string_view type, std::string_view name) {
  const GptType known = gpt_type(type);
  if (known == GptType::nemotron_h) return name.starts_with("mtp.");
  return remembers(known) && (name.starts_with("mtp.") || name.starts_with("model.visual."));
}

}  // namespace weft
