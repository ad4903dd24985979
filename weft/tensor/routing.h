// The options and results of choosing experts for tokens; ops/routing.h checks them, backends trust them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "weft/tensor/tensor.h"

namespace weft {

/// What a router's logits become before experts are compared, or their weights are taken from.
enum class RouterScore : std::uint8_t { softmax, sigmoid, sqrt_softplus };
/// Who stays where more tokens chose an expert than it takes: those of the greatest weights, or the first.
enum class DropPolicy : std::uint8_t { probs, position };

constexpr std::array<std::string_view, 3> words(RouterScore) {
  return {"softmax", "sigmoid", "sqrtsoftplus"};
}
constexpr std::array<std::string_view, 2> words(DropPolicy) { return {"probs", "position"}; }

struct RouteArgs {
  RouterScore score = RouterScore::softmax;
  /// Softmax over all experts, of which the chosen ones keep theirs; else over the chosen ones.
  bool softmax_first = false;
  /// Experts in so many groups of neighbours (0: none), of which the best `groups_kept` are chosen from. A
  /// group is as good as the sum of its best k / groups_kept experts.
  int groups = 0, groups_kept = 0;
  float scaling = 1;  // of the weights, last
};

/// Of every token k experts, the best first; of equal ones the lower index.
struct Routed {
  Tensor weights;  // f32 [t, k]
  Tensor experts;  // i32 [t, k]
};

/// Rows by expert: where they come from, and where each expert's begin. What is no row is -1: it stands last,
/// or where experts have room for so many rows each, behind those of each expert.
struct RowPlan {
  Tensor tokens;   // i32 [t * k], or [e * room]: the token of each row
  Tensor slots;    // the same: its choice, counted through: token * k + which
  Tensor offsets;  // i64 [e + 1]: rows [offsets[j], offsets[j + 1]) are expert j's
};

}  // namespace weft
