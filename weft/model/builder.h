// What families of transformers have in common, made of their lists of parameters: every parameter gets its
// place in the whole here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weft/model/kind.h"
#include "weft/model/layer_parts.h"
#include "weft/nn/attention.h"
#include "weft/nn/block.h"
#include "weft/nn/cross_attention.h"
#include "weft/nn/embedding.h"
#include "weft/nn/experts.h"
#include "weft/nn/further_tokens.h"
#include "weft/nn/heads.h"
#include "weft/nn/mlp.h"
#include "weft/nn/whole_linear.h"

namespace weft {

/// What a model's MLPs make of their halves.
Gate gate_of(const ModelConfig& config);

/// Makes the parts of one stage; what they are called is the family's affair.
class Builder {
 public:
  Builder(const ModelConfig& config, ParameterList list, const StagePart& part, const Circles& circles,
          Device& device);

  // ---- pieces of a layer, by the name of their parameters
  /// Held whole by every tensor-parallel rank.
  Parameter shared(const std::string& name) const;
  /// The same of what sees a rank's part of the sequence only, where that is cut.
  Parameter shared_in_sequence(const std::string& name) const;
  std::optional<Parameter> shared_if_listed(const std::string& name) const;
  Norm norm(const std::string& name) const;
  ColumnLinear column(const std::string& name, BiasAdded added) const;
  RowLinear row(const std::string& name) const;
  /// It is computed again with all MLPs, or with those of its kind alone.
  Mlp mlp(const std::string& name, RecomputeModule alone = RecomputeModule::mlp) const;
  /// What a stack of layers reads, and which keys its queries see.
  struct Looks {
    Mask mask = Mask::causal;
    Side side = Side::text;
    bool memory = false;  // looks at an encoder's output, too
  };
  SelfAttention attention(const std::string& name, int layer, const Looks& looks);

  std::unique_ptr<Inner> latent_attention(const std::string& name, int layer, const Looks& looks);
  std::unique_ptr<Inner> delta_memory(const std::string& name, int layer);
  std::unique_ptr<Inner> state_memory(const std::string& name, int layer);
  CrossAttention cross_attention(const std::string& name, int layer);
  /// What stands in the place of the MLP of a layer that has experts.
  std::unique_ptr<Inner> experts(const std::string& name, int layer) const;

  // ---- layers
  /// What the layer of this number is made of, and attention to an encoder's output behind attention where
  /// the stack looks there.
  std::unique_ptr<Layer> block(const std::string& name, int layer, const Looks& looks);
  using MakeBlock = std::function<std::unique_ptr<Layer>(int layer)>;
  /// The stage's blocks, some of them recomputed together; `make` gets the number of a layer.
  void add_blocks(Stage& stage, const MakeBlock& make) const;
  /// Of these, those from layer `from` up to layer `to`.
  void add_blocks(Stage& stage, int from, int to, const MakeBlock& make) const;
  std::unique_ptr<Layer> embedding(Side side = Side::text);
  /// What a stack knows of distances between its tokens.
  std::unique_ptr<Layer> relative_biases(const std::string& name, const Looks& looks) const;
  std::unique_ptr<LanguageHead> head() const;
  /// What guesses tokens beyond the next one, and the head behind it, which it uses too.
  void add_further_tokens_and_head(Stage& stage, const MakeBlock& make);

  const ParameterList& list() const { return list_; }
  const StagePart& part() const { return part_; }
  const TensorParallel& tensor_parallel() const { return tp_; }
  const ContextParallel& context_parallel() const { return context_; }
  const SumRules& sums() const { return sums_; }
  TokenCut token_cut() const { return sums_.tokens(context_.circle); }
  bool recomputes(RecomputeModule module) const;
  /// Who share out what is kept of layers that are computed again.
  std::optional<TensorParallel> keepers() const;

 private:
  Along tensor_ranks() const { return {Axis::tp, tp_.rank(), tp_.size()}; }
  Norm norm_of(const std::string& name, const NormRows& rows) const;
  Norm norm_of(const std::string& name, const NormRows& rows, const NormArgs& how) const;
  NormArgs usual_norm() const;
  NormRows rows_of_norm() const;
  Norm latent_norm(const std::string& name) const;
  /// Of each head, with gains or without.
  Norm head_norm(const std::string& name, const NormRows& rows) const;
  /// Of each head, with gains of its own.
  Norm norm_of_each(const std::string& name, const NormRows& rows, bool shared) const;
  /// Ones that nobody learns.
  Tensor fixed_gain(std::int64_t width, Dtype dtype) const;
  Parameter rows_of(const std::string& name, const Along& cut) const;
  Parameter columns_of(const std::string& name) const;
  /// Of a matrix that tensor-parallel ranks hold whole.
  WholeLinear whole(const std::string& name) const;
  // ---- attention
  std::unique_ptr<Inner> attends(const std::string& name, int layer, const Looks& looks);
  std::unique_ptr<Inner> inner(const std::string& name, int layer, LayerPart part, const Looks& looks);
  Sublayer sublayer(const std::string& name, int layer, LayerPart part, const Looks& looks);
  /// Attention and what stands beside it, as one.
  Sublayer parallel_sublayers(const std::string& name, int layer, const Looks& looks);
  std::vector<Sublayer> sublayers(const std::string& name, int layer, const Looks& looks);
  /// Of what is cut over the circle, or comes and goes as what stands around it has it.
  TensorParallel of_products(bool outside) const {
    return outside ? TensorParallel{tp_.circle, Between::as_around, tp_.sums} : tp_;
  }
  /// The number of the first dropout of a layer of so many parts.
  int first_dropout(int layer, int parts) const;
  int as_layer(int layer) const;
  bool turns(int layer) const;
  Tensor angles(int layer);
  bool sees_part(int layer) const;  // of the text before: a window of it, or a chunk
  std::int64_t window(int layer) const;
  Tensor query_angles(int layer);
  Tensor falling();
  ContextParallel context_of(int layer) const;
  AttentionShape attention_shape(int layer, const Looks& looks);
  Sinks sinks(const std::string& name) const;
  /// Of a key group, in sums over its heads; 1 where nobody asks for the same bits.
  std::int64_t parts() const { return sums_.key_parts(config_.heads, config_.groups); }
  std::int64_t parts_here() const { return parts() > 1 ? parts() / sharers() : 1; }
  int sharers() const { return key_sharers(config_, tp_.size()); }
  int neighbour() const { return tp_.rank() % sharers(); }
  void share_group(Parameter& parameter) const;
  Neighbours neighbours() const;
  KeyRows key_rows() const;
  ColumnLinear qkv(const std::string& name, int layer) const;
  /// Says which rows of a matrix make queries and keys, in layers whose scores anybody looks at.
  void tell_scores(ColumnLinear& of, const ScoreRows& rows) const;
  ScoreRows scores_of_group(int layer) const;
  /// Of a product: its scales are called after it.
  Fp8 fp8_of(const std::string& product) const;
  static void cut_in_halves(Parameter& parameter, const Along& cut);
  FurtherTokens::Depth depth(const std::string& name, std::unique_ptr<Layer> block) const;
  // ---- experts
  Router router(const std::string& name, int layer) const;
  enum class ExpertSide : std::uint8_t { up, down };
  ExpertProducts expert_products(const std::string& name, ExpertSide side) const;
  Parameter expert_parameter(const std::string& name, ExpertSide side) const;
  /// Of a matrix that multiplies the tokens that a rank's experts have.
  Parameter for_own_tokens(const std::string& name) const;
  std::optional<WholeLinear> for_tokens(const std::string& name, const TensorParallel& tp) const;
  // ---- words
  std::unique_ptr<Embedding> embed(Side side, bool from_first);
  bool positions_elsewhere() const;
  std::int64_t stored_words() const;
  VocabularyPart words_here() const;
  Parameter word_matrix(const std::string& name) const;
  Parameter word_bias(const std::string& name) const;
  bool words_elsewhere() const;

  const ModelConfig& config_;
  ParameterList list_;
  StagePart part_;
  SumRules sums_;
  TensorParallel tp_;
  ContextParallel context_;
  std::span<const ContextForm> context_layers_;
  ExpertCircles experts_;
  Device& device_;
  int layer_ = 0;                // that is being built
  bool enters_outside_ = false;  // of its products
  bool leaves_outside_ = false;
  Communicator* keys_ = nullptr;  // who share a key group
  Tensor angles_;                 // one table for all layers
  Tensor window_angles_;          // but for those with a window, which may turn otherwise
  Tensor growth_;                 // of queries of layers that turn nothing
  Tensor growing_angles_;         // of queries of those that turn
  Tensor falling_;                // biases by distance that nobody learns
  Parameter* words_ = nullptr;    // of this stage's first embedding
  Parameter* positions_ = nullptr;
  Parameter* ahead_words_ = nullptr;  // of further tokens: an output layer that is tied shares them
};

}  // namespace weft
