// A choice of experts that gives all of them about as many tokens, by Sinkhorn's iteration.
#pragma once

#include <span>

#include "weft/tensor/routing.h"

namespace weft {

/// exp(logits) [t, e], rows and columns multiplied until every row and every column adds up to the same as
/// the others; ends where the columns' factors change by less than 1e-4 on average, as Megatron's does.
void balance_by_sinkhorn(std::span<double> logits, std::size_t experts);

/// logits f32 [t, e] of all tokens that share experts out -> i32 [t, k], the best first; the host does it.
Tensor shared_out(const Tensor& logits, std::int64_t k);
/// logits [t, e], experts [t, k] -> f32 [t, k]: the score of each; softmax is over all experts.
Tensor weights_at(const Tensor& logits, const Tensor& experts, RouterScore score);

}  // namespace weft
