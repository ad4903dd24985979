// AheadConfig: tokens beyond the next one, guessed while training.
#pragma once

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

/// Behind the last layer, every depth joins what came before it with the word one place further on, puts a
/// layer of its own on top and guesses the word behind that; embedding and output layer are the model's.
struct AheadConfig {
  int depths = 0;
  bool repeated = false;  // all of them through one layer
  double factor = 0.1;    // of the mean of the depths' losses in the objective

  /// Layers that they have together.
  int layers() const { return repeated && depths > 1 ? 1 : depths; }
};

/// Each has a loss of its own, and few numbers are told of a step (nn/pass.h).
inline constexpr int most_depths = 4;

template <class Visitor>
void describe(Visitor& v, AheadConfig& c) {
  v("depths", c.depths, OnResume::model, "tokens guessed beyond the next one",
    legal::from_to(0, most_depths));
  v("repeated", c.repeated, OnResume::model, "guess them all through one layer");
  v("factor", c.factor, OnResume::step, "factor of the mean of further tokens' losses", legal::not_negative);
}

}  // namespace weft
