// Two ways of naming, and what both share: our rows are [group][queries, key, value] and [gate | up].
#include "weft/exchange/recipe.h"

#include <array>

namespace weft::exchange {
namespace {

class Cook {
 public:
  Cook(Family family, const ModelConfig& model) : gpt2_(family == Family::gpt2), m_(model) {
    // Only Gemma stores its gains as we do where ours stand around zero.
    plus_ = m_.norm_centered_gain && family != Family::gemma ? 1 : 0;
  }

  std::vector<Recipe> all() {
    same("embedding.words", gpt2_ ? "transformer.wte.weight" : "model.embed_tokens.weight",
         {m_.vocabulary, m_.hidden});
    if (m_.positions == Positions::learned)
      same("embedding.positions", "transformer.wpe.weight", {m_.max_positions, m_.hidden});
    for (int layer = 0; layer < m_.layers; ++layer) gpt2_ ? gpt2_layer(layer) : llama_layer(layer);
    norm("final_norm", gpt2_ ? "transformer.ln_f" : "model.norm", m_.hidden);
    if (!m_.tied_output) same("output.words", "lm_head.weight", {m_.vocabulary, m_.hidden});
    return std::move(out_);
  }

 private:
  void same(std::string ours, std::string theirs, const Shape& shape, double plus = 0) {
    out_.push_back({std::move(ours), shape, {{std::move(theirs), shape}}, {{0, 0, 0, shape[0]}}, plus});
  }
  void norm(const std::string& ours, const std::string& theirs, std::int64_t width) {
    same(ours + ".gain", theirs + ".weight", {width}, plus_);
    if (m_.norm == NormKind::layer) same(ours + ".bias", theirs + ".bias", {width});
  }
  // W [rows, columns], which GPT-2 stores the other way round, and its bias.
  Recipe matrix(std::string ours, const std::string& theirs, std::int64_t rows, std::int64_t columns) const {
    const Shape stored = gpt2_ ? Shape{columns, rows} : Shape{rows, columns};
    return {std::move(ours), {rows, columns}, {{theirs, stored, gpt2_}}, {{0, 0, 0, rows}}};
  }
  void linear(const std::string& ours, const std::string& theirs, std::int64_t rows, std::int64_t columns,
              bool bias) {
    out_.push_back(matrix(ours + ".weight", theirs + ".weight", rows, columns));
    if (bias) same(ours + ".bias", theirs + ".bias", {rows});
  }

  void gpt2_layer(int layer) {
    const std::string ours = "layers." + std::to_string(layer);
    const std::string theirs = "transformer.h." + std::to_string(layer);
    const std::int64_t h = m_.hidden;
    norm(ours + ".attention_norm", theirs + ".ln_1", h);
    const std::string attend = theirs + ".attn.c_attn";
    Recipe weight = matrix(ours + ".attention.qkv.weight", attend + ".weight", 3 * h, h);
    weight.runs = groups({0, 0, 0}, {0, h, 2 * h});
    out_.push_back(std::move(weight));
    Recipe bias{ours + ".attention.qkv.bias", {3 * h}, {{attend + ".bias", {3 * h}}}, {}};
    bias.runs = groups({0, 0, 0}, {0, h, 2 * h});
    out_.push_back(std::move(bias));
    linear(ours + ".attention.project", theirs + ".attn.c_proj", h, h, true);
    norm(ours + ".mlp_norm", theirs + ".ln_2", h);
    linear(ours + ".mlp.up", theirs + ".mlp.c_fc", m_.ffn_hidden, h, true);
    linear(ours + ".mlp.down", theirs + ".mlp.c_proj", h, m_.ffn_hidden, true);
  }

  void llama_layer(int layer) {
    const std::string ours = "layers." + std::to_string(layer);
    const std::string theirs = "model.layers." + std::to_string(layer);
    norm(ours + ".attention_norm", theirs + ".input_layernorm", m_.hidden);
    const std::int64_t q = m_.heads * m_.channels;
    attend(ours + ".attention.qkv", theirs + ".self_attn", ".weight", m_.hidden);
    if (m_.qkv_bias) attend(ours + ".attention.qkv", theirs + ".self_attn", ".bias", 0);
    if (m_.qk_norm) {
      head_norm(ours + ".attention.q_norm", theirs + ".self_attn.q_norm");
      head_norm(ours + ".attention.k_norm", theirs + ".self_attn.k_norm");
    }
    linear(ours + ".attention.project", theirs + ".self_attn.o_proj", m_.hidden, q, m_.linear_bias);
    norm(ours + ".mlp_norm", theirs + ".post_attention_layernorm", m_.hidden);
    widen(ours + ".mlp.up", theirs + ".mlp", ".weight", m_.hidden);
    if (m_.linear_bias) widen(ours + ".mlp.up", theirs + ".mlp", ".bias", 0);
    linear(ours + ".mlp.down", theirs + ".mlp.down_proj", m_.hidden, m_.ffn_hidden, m_.linear_bias);
  }

  static Shape rows_of(std::int64_t rows, std::int64_t columns) {
    return columns == 0 ? Shape{rows} : Shape{rows, columns};
  }
  void attend(const std::string& ours, const std::string& theirs, const std::string& what,
              std::int64_t columns) {
    const std::int64_t q = m_.heads * m_.channels, kv = m_.groups * m_.channels;
    Recipe recipe{ours + what,
                  rows_of(q + 2 * kv, columns),
                  {{theirs + ".q_proj" + what, rows_of(q, columns)},
                   {theirs + ".k_proj" + what, rows_of(kv, columns)},
                   {theirs + ".v_proj" + what, rows_of(kv, columns)}},
                  groups({0, 1, 2}, {0, 0, 0})};
    out_.push_back(std::move(recipe));
  }
  void widen(const std::string& ours, const std::string& theirs, const std::string& what,
             std::int64_t columns) {
    const std::int64_t f = m_.ffn_hidden;
    out_.push_back({ours + what,
                    rows_of(2 * f, columns),
                    {{theirs + ".gate_proj" + what, rows_of(f, columns)},
                     {theirs + ".up_proj" + what, rows_of(f, columns)}},
                    {{0, 0, 0, f}, {1, 0, f, f}}});
  }
  void head_norm(const std::string& ours, const std::string& theirs) {
    Recipe recipe{ours + ".gain", {m_.channels}, {{theirs + ".weight", {m_.channels}}}, {}, plus_};
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
  double plus_ = 0;
  std::vector<Recipe> out_;
};

}  // namespace

std::vector<Recipe> recipes(Family family, const ModelConfig& model) { return Cook(family, model).all(); }

// Causal masks of GPT-2 and the angles' frequencies.
bool is_known_table(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

}  // namespace weft::exchange
