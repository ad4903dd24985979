// Their queries, keys and values are matrices of their own; ours lie head by head in one, and so do the two
// halves of a gated MLP.
#include <initializer_list>

#include "weft/base/error.h"
#include "weft/model/t5/hub.h"
#include "weft/model/t5/t5.h"

namespace weft {
namespace {

class T5Cook {
 public:
  explicit T5Cook(const ModelConfig& model) : m_(model), list_(t5_parameters(model)) {}

  std::vector<Recipe> all() {
    same("embedding.words", "shared.weight");
    stack("encoder", m_.layers);
    stack("decoder", m_.decoder_layers);
    if (list_.has("output.words")) same("output.words", "lm_head.weight");
    if (out_.size() != list_.all().size())
      fail(Kind::internal, "exchange: ", out_.size(), " recipes for a model of ", list_.all().size(),
           " parameters");
    return std::move(out_);
  }

 private:
  void stack(const std::string& name, int layers) {
    same(name + ".distances", name + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight");
    for (int layer = 0; layer < layers; ++layer)
      add_layer(name + ".layers." + std::to_string(layer),
                name + ".block." + std::to_string(layer) + ".layer.");
    norm(name + ".final_norm", name + ".final_layer_norm");
  }
  void add_layer(const std::string& ours, const std::string& theirs) {
    const bool decodes = list_.has(ours + ".cross_norm.gain");
    norm(ours + ".attention_norm", theirs + "0.layer_norm");
    head_by_head(ours + ".attention.qkv.weight", theirs + "0.SelfAttention.", {"q", "k", "v"});
    same(ours + ".attention.project.weight", theirs + "0.SelfAttention.o.weight");
    const std::string mlp = theirs + (decodes ? "2." : "1.");
    norm(ours + ".mlp_norm", mlp + "layer_norm");
    up(ours + ".mlp.up.weight", mlp + "DenseReluDense.wi");
    same(ours + ".mlp.down.weight", mlp + "DenseReluDense.wo.weight");
    if (!decodes) return;
    norm(ours + ".cross_norm", theirs + "1.layer_norm");
    same(ours + ".cross.query.weight", theirs + "1.EncDecAttention.q.weight");
    head_by_head(ours + ".cross.key_value.weight", theirs + "1.EncDecAttention.", {"k", "v"});
    same(ours + ".cross.project.weight", theirs + "1.EncDecAttention.o.weight");
  }

  void same(const std::string& ours, std::string theirs, double plus = 0) {
    const Shape& shape = list_.at(ours).shape;
    out_.push_back({ours, shape, {{std::move(theirs), shape}}, {{0, 0, 0, shape[0]}}, plus});
  }
  void norm(const std::string& ours, const std::string& theirs) {
    same(ours + ".gain", theirs + ".weight", m_.norm_centered_gain ? 1 : 0);
  }
  /// [gate | up], or one matrix.
  void up(const std::string& ours, const std::string& theirs) {
    if (!m_.gated) return same(ours, theirs + ".weight");
    const std::int64_t f = m_.ffn_hidden;
    const Shape half{f, m_.hidden};
    out_.push_back({ours,
                    list_.at(ours).shape,
                    {{theirs + "_0.weight", half}, {theirs + "_1.weight", half}},
                    {{0, 0, 0, f}, {1, 0, f, f}}});
  }
  void head_by_head(const std::string& ours, const std::string& theirs,
                    std::initializer_list<const char*> which) {
    const std::int64_t d = m_.channels, each = std::int64_t(which.size());
    Recipe recipe{ours, list_.at(ours).shape, {}, {}};
    for (const char* one : which)
      recipe.parts.push_back({theirs + one + ".weight", {m_.heads * d, m_.hidden}});
    for (std::int64_t head = 0; head < m_.heads; ++head)
      for (std::int64_t one = 0; one < each; ++one)
        recipe.runs.push_back({std::size_t(one), head * d, (each * head + one) * d, d});
    out_.push_back(std::move(recipe));
  }

  const ModelConfig& m_;
  ParameterList list_;
  std::vector<Recipe> out_;
};

}  // namespace

std::vector<Recipe> t5_recipes(const ModelConfig& model, std::string_view) { return T5Cook(model).all(); }

}  // namespace weft
