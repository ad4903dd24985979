// Two ways of naming, and what both share: our rows are [group][queries, key, value] and [gate | up].
#include <array>

#include "weft/base/error.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/gpt/hub.h"

namespace weft {
namespace {

class Cook {
 public:
  Cook(const ModelConfig& model, GptType type)
      : gpt2_(type == GptType::gpt2), m_(model), list_(gpt_parameters(model)) {
    // Only Gemma stores its gains as we do where ours stand around zero.
    plus_ = m_.norm_centered_gain && type != GptType::gemma ? 1 : 0;
  }

  std::vector<Recipe> all() {
    same("embedding.words", gpt2_ ? "transformer.wte.weight" : "model.embed_tokens.weight");
    if (list_.has("embedding.positions")) same("embedding.positions", "transformer.wpe.weight");
    for (int layer = 0; layer < m_.layers; ++layer) gpt2_ ? gpt2_layer(layer) : llama_layer(layer);
    norm("final_norm", gpt2_ ? "transformer.ln_f" : "model.norm");
    if (list_.has("output.words")) same("output.words", "lm_head.weight");
    if (out_.size() != list_.all().size())
      fail(Kind::internal, "exchange: ", out_.size(), " recipes for a model of ", list_.all().size(),
           " parameters");
    return std::move(out_);
  }

 private:
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
    norm(ours + ".attention_norm", theirs + ".input_layernorm");
    attend(ours + ".attention.qkv", theirs + ".self_attn", ".weight");
    if (list_.has(ours + ".attention.qkv.bias"))
      attend(ours + ".attention.qkv", theirs + ".self_attn", ".bias");
    if (list_.has(ours + ".attention.q_norm.gain")) {
      head_norm(ours + ".attention.q_norm", theirs + ".self_attn.q_norm");
      head_norm(ours + ".attention.k_norm", theirs + ".self_attn.k_norm");
    }
    linear(ours + ".attention.project", theirs + ".self_attn.o_proj");
    norm(ours + ".mlp_norm", theirs + ".post_attention_layernorm");
    widen(ours + ".mlp.up", theirs + ".mlp", ".weight");
    if (list_.has(ours + ".mlp.up.bias")) widen(ours + ".mlp.up", theirs + ".mlp", ".bias");
    linear(ours + ".mlp.down", theirs + ".mlp.down_proj");
  }

  /// As wide as a tensor of ours, with another number of rows.
  static Shape rows_of(const Shape& whole, std::int64_t rows) {
    Shape out = whole;
    out[0] = rows;
    return out;
  }
  void attend(const std::string& ours, const std::string& theirs, const std::string& what) {
    const std::int64_t q = m_.heads * m_.channels, kv = m_.groups * m_.channels;
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
    const std::int64_t f = m_.ffn_hidden;
    const Shape& shape = shape_of(ours + what);
    out_.push_back(
        {ours + what,
         shape,
         {{theirs + ".gate_proj" + what, rows_of(shape, f)}, {theirs + ".up_proj" + what, rows_of(shape, f)}},
         {{0, 0, 0, f}, {1, 0, f, f}}});
  }
  void head_norm(const std::string& ours, const std::string& theirs) {
    Recipe recipe{ours + ".gain", shape_of(ours + ".gain"), {{theirs + ".weight", {m_.channels}}}, {}, plus_};
    turning(recipe.runs, 0, 0, 0);
    out_.push_back(std::move(recipe));
  }

  // One head's channels. They turn the first half with the second; where we turn neighbors, our channels
  // 2i and 2i + 1 are their i and i + d/2.
  void turning(std::vector<RowRun>& runs, std::size_t part, std::int64_t from, std::int64_t to) const {
    const std::int64_t d = m_.channels;
    if (m_.positions != Positions::rotary || !m_.rotary.interleaved) {
      runs.push_back({part, from, to, d});
      return;
    }
    for (std::int64_t i = 0; i < d; ++i) runs.push_back({part, from + i / 2 + i % 2 * (d / 2), to + i, 1});
  }
  // [group][queries, key, value], each from its part, where queries, keys and values start at `first`.
  std::vector<RowRun> groups(const std::array<std::size_t, 3>& part,
                             const std::array<std::int64_t, 3>& first) const {
    const std::int64_t d = m_.channels, per_group = m_.heads / m_.groups;
    std::vector<RowRun> runs;
    std::int64_t to = 0;
    for (std::int64_t g = 0; g < m_.groups; ++g) {
      for (std::int64_t q = 0; q < per_group; ++q, to += d)
        turning(runs, part[0], first[0] + (g * per_group + q) * d, to);
      turning(runs, part[1], first[1] + g * d, to);
      to += d;
      runs.push_back({part[2], first[2] + g * d, to, d});
      to += d;
    }
    return runs;
  }

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

}  // namespace weft
