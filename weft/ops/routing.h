// Choosing experts for tokens, and what balances them. Logits are f32 or f64; so are then scores, what is
// compared, and gradients of logits. What leaves is f32: weights, and terms of losses.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// logits [t, e], bias f32 [e] or empty -> k experts a token and their weights; the bias helps to choose
/// and is in no weight.
Routed route(const Tensor& logits, const Tensor& bias, std::int64_t k, const RouteArgs& how);
/// dlogits [t, e], of the logits' type, += the derivative of the weights times dweights [t, k]; none of the
/// bias.
void route_backward_into(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                         const Routed& routed, const RouteArgs& how);

/// experts i32 [t, k] -> f32 [b, e]: how often each stands in the rows of each sample, rows i with i % b.
Tensor count_experts(const Tensor& experts, std::int64_t samples, std::int64_t count);

/// [t]: of each token the sum of all experts' scores times factors f32 [b, e], of its sample; dlogits, if
/// given, gets scale times the gradient of their sum. Scores add up to one.
Tensor balance(const Tensor& dlogits, const Tensor& logits, const Tensor& factors, RouterScore score,
               float scale);
/// [t]: of each token (log of the sum of exp(logits))^2; dlogits as above.
Tensor square_log_sum(const Tensor& dlogits, const Tensor& logits, float scale);

/// bias f32 [e] goes up by rate where counts f32 [e] is below its mean, down where it is above.
void follow_counts(const Tensor& bias, const Tensor& counts, float rate);

/// i32 [t, k]: the experts, -1 where one of them has more than `most` tokens.
Tensor limit_experts(const Routed& routed, std::int64_t most, DropPolicy policy);
/// experts i32 [t, k], -1: dropped; room: rows of each expert, 0: as many as chose it
RowPlan plan_rows(const Tensor& experts, std::int64_t count, std::int64_t room = 0);

}  // namespace weft::ops
