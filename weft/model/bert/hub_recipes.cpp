// Their queries, keys and values are three matrices; ours is one, head by head. Their norms behind the sums
// are ours before what comes next.
#include "weft/base/error.h"
#include "weft/model/bert/bert.h"
#include "weft/model/bert/hub.h"

namespace weft {
namespace {

class BertCook {
 public:
  BertCook(const ModelConfig& model, BertType type)
      : roberta_(is_roberta(type)),
        behind_(type != BertType::megatron),
        trunk_(roberta_ ? "roberta." : "bert."),
        m_(model),
        list_(bert_parameters(model)) {}

  std::vector<Recipe> all() {
    same("embedding.words", trunk_ + "embeddings.word_embeddings.weight");
    roberta_ ? tables_of_roberta() : tables();
    for (int layer = 0; layer < m_.layers; ++layer) add_layer(layer);
    norm("final_norm", behind_ ? of_layer(m_.layers - 1) + ".output.LayerNorm" : "bert.encoder.ln");
    if (m_.sentence_order) {
      linear("pooler", "bert.pooler.dense");
      linear("sentence_order", "cls.seq_relationship");
    }
    roberta_ ? head_of_roberta() : head();
    if (out_.size() != list_.all().size())
      fail(Kind::internal, "exchange: ", out_.size(), " recipes for a model of ", list_.all().size(),
           " parameters");
    return std::move(out_);
  }

 private:
  std::string of_layer(int layer) const { return trunk_ + "encoder.layer." + std::to_string(layer); }
  void tables() {
    same("embedding.positions", "bert.embeddings.position_embeddings.weight");
    if (list_.has("embedding.types")) same("embedding.types", "bert.embeddings.token_type_embeddings.weight");
  }
  // All words are of one type, whichever we say.
  void tables_of_roberta() {
    const std::int64_t places = m_.max_positions, h = m_.hidden;
    out_.push_back({"embedding.positions",
                    {places, h},
                    {{"roberta.embeddings.position_embeddings.weight", {places + places_in_front, h}}},
                    {{0, places_in_front, 0, places}}});
    out_.push_back({"embedding.types",
                    {2, h},
                    {{"roberta.embeddings.token_type_embeddings.weight", {1, h}}},
                    {{0, 0, 0, 1}, {0, 0, 1, 1}}});
  }
  void head() {
    linear("transform", "cls.predictions.transform.dense");
    norm("transform.norm", "cls.predictions.transform.LayerNorm");
    const bool own = list_.has("output.words");
    if (own) same("output.words", "cls.predictions.decoder.weight");
    same("output.bias", own ? "cls.predictions.decoder.bias" : "cls.predictions.bias");
  }
  void head_of_roberta() {
    linear("transform", "lm_head.dense");
    norm("transform.norm", "lm_head.layer_norm");
    const bool own = list_.has("output.words");
    if (own) same("output.words", "lm_head.decoder.weight");
    same("output.bias", own ? "lm_head.decoder.bias" : "lm_head.bias");
  }
  std::string first_norm(int layer) const {
    if (!behind_) return of_layer(layer) + ".attention.ln";
    return layer == 0 ? trunk_ + "embeddings.LayerNorm" : of_layer(layer - 1) + ".output.LayerNorm";
  }
  void same(const std::string& ours, std::string theirs) {
    const Shape& shape = list_.at(ours).shape;
    out_.push_back({ours, shape, {{std::move(theirs), shape}}, {{0, 0, 0, shape[0]}}});
  }
  void norm(const std::string& ours, const std::string& theirs) {
    same(ours + ".gain", theirs + ".weight");
    same(ours + ".bias", theirs + ".bias");
  }
  void linear(const std::string& ours, const std::string& theirs) {
    same(ours + ".weight", theirs + ".weight");
    same(ours + ".bias", theirs + ".bias");
  }
  void add_layer(int layer) {
    const std::string ours = "layers." + std::to_string(layer), theirs = of_layer(layer);
    norm(ours + ".attention_norm", first_norm(layer));
    attend(ours + ".attention.qkv.weight", theirs, ".weight");
    attend(ours + ".attention.qkv.bias", theirs, ".bias");
    linear(ours + ".attention.project", theirs + ".attention.output.dense");
    norm(ours + ".mlp_norm", theirs + (behind_ ? ".attention.output.LayerNorm" : ".ln"));
    linear(ours + ".mlp.up", theirs + ".intermediate.dense");
    linear(ours + ".mlp.down", theirs + ".output.dense");
  }
  void attend(const std::string& ours, const std::string& theirs, const std::string& what) {
    const Shape& shape = list_.at(ours).shape;
    Shape part = shape;
    part[0] = m_.hidden;
    Recipe recipe{ours, shape, {}, {}};
    for (const char* one : {"query", "key", "value"})
      recipe.parts.push_back({text(theirs, ".attention.self.", one, what), part});
    const std::int64_t d = m_.channels;
    for (std::int64_t head = 0; head < m_.heads; ++head)
      for (std::size_t one = 0; one < 3; ++one)
        recipe.runs.push_back({one, head * d, (3 * head + std::int64_t(one)) * d, d});
    out_.push_back(std::move(recipe));
  }

  bool roberta_, behind_;
  std::string trunk_;
  const ModelConfig& m_;
  ParameterList list_;
  std::vector<Recipe> out_;
};

}  // namespace

std::vector<Recipe> bert_recipes(const ModelConfig& model, std::string_view type) {
  return BertCook(model, bert_type(type)).all();
}

}  // namespace weft
