// Weights of queries and keys that are held down where they make too large scores (MuonClip's QK clip).
//
//   eta = min(1, threshold / greatest score),   queries *= eta^alpha,   keys *= eta^(1 - alpha)
//
// so that a head's scores shrink by eta. Where query heads share a key, the greatest score of all of them
// decides. Channels of latent attention's queries that turn meet a key that all heads share and that stays:
// they take eta alone. Biases stay as they are, as Megatron leaves them.
#pragma once

#include <cstdint>
#include <span>

#include "weft/optim/weights.h"

namespace weft {

struct ScoreClip {
  double threshold = 100, alpha = 0.5;
  std::span<const float> greatest;  // of all layers and heads of the model, the same on all ranks
  std::int64_t heads = 1;

  /// Whether some weights, of whichever rank, are to shrink.
  bool acts() const;
  /// Of the scores of some heads of a layer, counted from `first`.
  double eta(int layer, std::int64_t first, std::int64_t count) const;
  /// Of the rows that make such a part of them.
  double factor(double eta, ScoreRows::Of of) const;
};

/// After an update: masters shrink, and layers see what they are then. An optimizer's other states stay.
/// Collective over the mesh.
void clip_scores(Weights& weights, const ScoreClip& clip);

}  // namespace weft
