// Self-attention: query, key and value from one product, heads in groups that share a key and a value.
#pragma once

#include <optional>

#include "weft/nn/key_parts.h"
#include "weft/nn/sinks.h"
#include "weft/nn/sublayer.h"
#include "weft/tensor/args.h"

namespace weft {

/// What a rank needs to know about its heads.
struct AttentionShape {
  std::int64_t groups = 1;     // key heads held here
  std::int64_t per_group = 1;  // query heads that share one
  std::int64_t channels = 1;   // of a head
  bool gated = false;          // every head has a gate, beside its query
  bool normed_last = false;    // norms of heads stand behind turning
  float limit = 0;             // of queries, keys and values; 0: none
  std::int64_t head0 = 0;      // number of the first query head held here, in the whole model
  int layer = 0;               // number of the layer, in the whole model
  float scale = 1;
  float dropout = 0;
  float cap = 0;  // of scores; 0: none
  std::int64_t window = 0;
  std::int64_t chunk = 0;  // of places that see each other; 0: all do
  Side side = Side::text;
  Mask mask = Mask::causal;
  Tensor angles;        // rotary positions; empty without them
  Tensor query_angles;  // where queries grow; empty: they turn as keys do
  Pairing pairing = Pairing::halves;
  ContextParallel context;
  KeyParts parts;                // of key groups, in exact mode
  Tensor falling;                // f32 [heads here, distances]: biases that nobody learns; empty: none
  std::int64_t no_distance = 0;  // the column of any biases for a query and a key at the same place
  /// What the first product makes of a key group: queries, gates, a key and a value.
  std::int64_t rows_of_group() const { return (gated ? 2 : 1) * per_group + 2; }
};

/// How a rank's heads attend in this pass, and how they turn.
AttentionArgs attention_args(const Pass& pass, const AttentionShape& shape, const Tensor& biases,
                             const Tensor& sinks);
RopeArgs rope_args(const Pass& pass, const AttentionShape& shape, Turn turn);
/// Of other angles than the heads'.
RopeArgs rope_args(const Pass& pass, const AttentionShape& shape, const Tensor& angles, Turn turn);

class SelfAttention final : public Inner {
 public:
  /// Norms of single heads' queries and keys, where a model has them, or of those of all heads together.
  struct HeadNorms {
    Norm q, k;
    Communicator* whole = nullptr;  // of these, the tensor-parallel ranks that have them
  };
  SelfAttention(ColumnLinear qkv, RowLinear project, std::optional<HeadNorms> norms,
                const AttentionShape& shape, Sinks sinks = {})
      : qkv_(std::move(qkv)),
        project_(std::move(project)),
        norms_(std::move(norms)),
        shape_(shape),
        sinks_(std::move(sinks)) {}
  /// x [s (/tp), b, h] -> y [s (/tp), b, h]; the projection's bias is left to the reader
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return project_.bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) override;

 private:
  struct Saved {
    Tensor qkv;  // [s, b, g (r (+ r) + 2) d]; turned in place where there are no head norms, or they are last
    Tensor raw;  // of these, what was made where they are limited
    Tensor qk;   // [s, b, g (r + 1) d]: normed and turned, where there are; all queries first where they are
                 // whole
    NormStats q_stats, k_stats;
    ContextKept kept;
    Tensor biases;
  };
  Attended views(const Tensor& qkv) const;
  Tensor gates(const Tensor& qkv) const;
  /// How far gates are open, [s, b, g, r, d]; empty where heads have none.
  Tensor open(const Saved& saved) const;
  /// The gradient of what heads give; that of gates goes to theirs.
  Tensor said_backward(const Saved& saved, const Tensor& open, const Tensor& d, const Tensor& dqkv) const;
  Attended normed_views(const Saved& saved) const;
  void make(Pass& pass, Saved& saved) const;
  void norm_heads(Saved& saved) const;
  void norm_whole(Saved& saved, const Attended& raw) const;
  void norm_whole_backward(const Saved& saved, const Attended& dqkv);
  void norm_heads_backward(const Saved& saved, const Attended& dqkv);
  void turn(const Pass& pass, const Attended& heads, Turn turn) const;
  void turn_and_norm_backward(Pass& pass, const Saved& saved, const Attended& grads);

  ColumnLinear qkv_;
  RowLinear project_;
  std::optional<HeadNorms> norms_;
  AttentionShape shape_;
  Sinks sinks_;
};

}  // namespace weft
