// How each tensor of a GPT is made of theirs: our rows are [group][queries, key, value] and [gate | up].
#pragma once

#include <array>

#include "weft/model/gpt/gpt.h"
#include "weft/model/gpt/hub.h"
#include "weft/model/layer_parts.h"
#include "weft/model/parameters.h"

namespace weft {

/// Makes the recipes of one model, in the order of its list.
class GptCook {
 public:
  GptCook(const ModelConfig& model, GptType type)
      : type_(type), gpt2_(type == GptType::gpt2), m_(model), list_(gpt_parameters(model)) {
    plus_ = (m_.norm_centered_gain ? 1 : 0) - (centers_gains(type) ? 1 : 0);
  }

  std::vector<Recipe> all();

 private:
  std::vector<Recipe> finished();
  const Shape& shape_of(const std::string& ours) const { return list_.at(ours).shape; }
  void same(const std::string& ours, std::string theirs, double plus = 0);
  void norm(const std::string& ours, const std::string& theirs);
  // W [rows, columns], which GPT-2 stores the other way round.
  Recipe matrix(const std::string& ours, const std::string& theirs) const;
  void linear(const std::string& ours, const std::string& theirs);
  /// GPT-2's names, GPT-BigCode's, GPT-Neo's and OPT's.
  std::vector<Recipe> learned();
  void learned_layer(int layer);
  void places_of_opt();
  void opt_layer(int layer);
  void llama_layer(int layer);
  /// Granite's mixtures: all experts of a layer in one tensor, beside a shared one or not.
  void experts_of_granite(const std::string& ours, const std::string& theirs);
  /// GPT-NeoX's names, GPT-J's, Phi's, Falcon's, Cohere's, BLOOM's, MPT's, StableLM's and OLMo 1's.
  std::vector<Recipe> beside();
  void layer_beside(int layer);
  /// Theirs are rows of key groups as ours, but for how channels that turn stand.
  std::vector<RowRun> in_groups() const;
  /// Attention and an MLP, or experts, of any layer that is made so.
  void layer_of(const std::string& ours, const std::string& theirs);
  /// A layer that remembers: filters of all heads' queries, of their keys and of their values stand behind
  /// each other.
  void delta(const std::string& ours, const std::string& theirs);
  /// Of each key head queries, keys, values and gates in one tensor, rates and decays in another.
  void made_in_two(const std::string& ours, const std::string& theirs);
  /// What filters read as they have it, then all heads' gates, rates and decays, each in a tensor.
  void made_in_four(const std::string& ours, const std::string& theirs);
  /// A key head's query, key and values, out of all queries, all keys and all values.
  void filtered(std::vector<RowRun>& runs, std::int64_t head, std::int64_t to) const;
  void norms_of(const std::string& ours, const std::string& theirs);
  void attention(const std::string& ours, const std::string& theirs);
  void latent_attention(const std::string& ours, const std::string& theirs);
  void mlp(const std::string& ours, const std::string& theirs);
  void experts(const std::string& ours, const std::string& theirs);
  void expert(const std::string& ours, const std::string& theirs);
  /// gpt-oss has one tensor for all experts of a layer, stored [in, out], with a row of the gate and one of
  /// what it lets through in turn.
  void stacked_experts(const std::string& ours, const std::string& theirs);
  /// Llama 4 has them so too, gates in front of what they let through.
  void experts_of_llama4(const std::string& ours, const std::string& theirs);
  /// The e-th slab of a tensor, turned where it is a matrix.
  void stacked(const std::string& ours, std::string theirs, std::int64_t e);
  /// What DeepSeek-V3's files have behind the last layer, as layers of their own.
  void further_tokens();
  /// Nemotron-H's names.
  std::vector<Recipe> hybrid();
  LayerPart part_at(int layer, std::size_t i) const { return parts_of_layer(m_, layer)[i]; }
  /// Bamba's and Granite 4's names: a layer of theirs is two of ours.
  std::vector<Recipe> in_pairs();
  void second_of_pair(const std::string& ours, const std::string& theirs);
  /// All of a layer's in one tensor, stored as each is here.
  void slab(const std::string& ours, std::string theirs, std::int64_t e);
  void part(const std::string& ours, const std::string& theirs, LayerPart what);
  void state(const std::string& ours, const std::string& theirs);
  /// A depth's parts are layers there, of which the first has what joins, and the last a norm behind it.
  void further_parts(int depth);
  /// As wide as a tensor of ours, with another number of rows.
  static Shape rows_of(const Shape& whole, std::int64_t rows) {
    Shape out = whole;
    out[0] = rows;
    return out;
  }
  void attend(const std::string& ours, const std::string& theirs, const std::string& what);
  /// All queries, then all keys, then all values, in one tensor; or each head's three together.
  void attend_in_one(const std::string& ours, const std::string& theirs);
  void widen(const std::string& ours, const std::string& theirs, const std::string& what);
  /// Ours is theirs, one above the other.
  void two_halves(const std::string& ours, std::string above, std::string below);
  void head_norm(const std::string& ours, const std::string& theirs);
  /// With gains of each head's own: one matrix, or a tensor for each.
  void norm_of_each(const std::string& ours, const std::string& theirs, std::int64_t heads);
  void head_norms_beside(const std::string& ours, const std::string& theirs);
  void turning(std::vector<RowRun>& runs, std::size_t part, std::int64_t from, std::int64_t to) const;
  /// Rows that a query has in their tensor, where a gate may follow it.
  std::int64_t of_a_query() const { return m_.channels * (m_.attention_gate ? 2 : 1); }
  // [group][queries, gates, key, value], each from its part, where queries, keys and values start at `first`.
  std::vector<RowRun> groups(const std::array<std::size_t, 3>& part,
                             const std::array<std::int64_t, 3>& first) const;

  GptType type_;
  bool gpt2_;
  const ModelConfig& m_;
  ParameterList list_;
  double plus_ = 0;
  std::vector<Recipe> out_;
};

}  // namespace weft
