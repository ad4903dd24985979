// Doors of the router: everything is small, f32, f64 or whole numbers, and fills its memory.
#include "weft/ops/routing.h"

#include <limits>

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

void check_logits(const Door& door, const Tensor& logits) {
  if (logits.dtype() != Dtype::f64) door.typed("logits", logits, Dtype::f32);
  door.ranked("logits", logits, 2, 2).contiguous("logits", logits);
  if (logits.dim(1) < 1) door.refuse(Kind::shape, "logits ", logits.shape(), " are of no expert");
}

void check_gradient(const Door& door, const Tensor& dlogits, const Tensor& logits) {
  if (dlogits) door.holds("dlogits", dlogits, logits.dtype(), logits.shape()).contiguous("dlogits", dlogits);
}

void check_choice(const Door& door, const Tensor& logits, std::int64_t k, const RouteArgs& how) {
  const std::int64_t e = logits.dim(1);
  if (k < 1 || k > e) door.refuse(Kind::usage, k, " of ", e, " experts");
  if (how.groups == 0) return;
  if (how.groups < 0 || e % how.groups != 0)
    door.refuse(Kind::usage, e, " experts in ", how.groups, " groups");
  if (how.groups_kept < 1 || how.groups_kept > how.groups || k > how.groups_kept * (e / how.groups))
    door.refuse(Kind::usage, k, " experts of the best ", how.groups_kept, " of ", how.groups, " groups of ",
                e / how.groups);
  if (k / how.groups_kept < 1)
    door.refuse(Kind::usage, k, " experts are fewer than the ", how.groups_kept,
                " groups they are chosen from");
}

void check_experts(const Door& door, const Tensor& experts) {
  door.typed("experts", experts, Dtype::i32).ranked("experts", experts, 2, 2).contiguous("experts", experts);
}

void check_routed(const Door& door, const Routed& routed) {
  check_experts(door, routed.experts);
  door.holds("weights", routed.weights, Dtype::f32, routed.experts.shape())
      .contiguous("weights", routed.weights);
}

}  // namespace

Routed route(const Tensor& logits, const Tensor& bias, std::int64_t k, const RouteArgs& how) {
  const Door door("route", logits);
  check_logits(door, logits);
  check_choice(door, logits, k, how);
  if (bias) door.holds("bias", bias, Dtype::f32, {logits.dim(1)}).contiguous("bias", bias);
  const Routed out{empty(logits.device(), {logits.dim(0), k}),
                   empty(logits.device(), {logits.dim(0), k}, Dtype::i32)};
  count::pass(logits, Work::other, count::softmax, count::traffic(logits, out.weights, out.experts));
  logits.device().kernels().route(out, logits, bias, how);
  return out;
}

void route_backward_into(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                         const Routed& routed, const RouteArgs& how) {
  const Door door("route_backward", logits);
  check_logits(door, logits);
  door.given("dlogits", dlogits);
  check_gradient(door, dlogits, logits);
  check_routed(door, routed);
  check_choice(door, logits, routed.experts.dim(1), how);
  door.holds("dweights", dweights, Dtype::f32, routed.experts.shape()).contiguous("dweights", dweights);
  count::pass(logits, Work::other, count::softmax_backward,
              count::traffic(dlogits, dlogits, logits, dweights));
  logits.device().kernels().route_backward(dlogits, dweights, logits, routed, how);
}

Tensor count_experts(const Tensor& experts, std::int64_t samples, std::int64_t count) {
  const Door door("count_experts", experts);
  check_experts(door, experts);
  if (samples < 1 || count < 1 || experts.dim(0) % samples != 0)
    door.refuse(Kind::shape, experts.dim(0), " tokens are of no ", samples, " samples");
  Tensor counts = empty(experts.device(), {samples, count});
  count::pass(experts, Work::other, count::add, count::traffic(experts, counts));
  experts.device().kernels().count_experts(counts, experts);
  return counts;
}

Tensor balance(const Tensor& dlogits, const Tensor& logits, const Tensor& factors, RouterScore score,
               float scale) {
  const Door door("balance", logits);
  check_logits(door, logits);
  check_gradient(door, dlogits, logits);
  door.typed("factors", factors, Dtype::f32).ranked("factors", factors, 2, 2).contiguous("factors", factors);
  if (factors.dim(1) != logits.dim(1) || factors.dim(0) < 1 || logits.dim(0) % factors.dim(0) != 0)
    door.refuse(Kind::shape, "factors ", factors.shape(), " are none of logits ", logits.shape());
  Tensor terms = empty(logits.device(), {logits.dim(0)});
  count::pass(logits, Work::other, count::softmax + count::softmax_backward,
              count::traffic(logits, dlogits, dlogits, terms));
  logits.device().kernels().balance(terms, dlogits, logits, factors, score, scale);
  return terms;
}

Tensor square_log_sum(const Tensor& dlogits, const Tensor& logits, float scale) {
  const Door door("square_log_sum", logits);
  check_logits(door, logits);
  check_gradient(door, dlogits, logits);
  Tensor terms = empty(logits.device(), {logits.dim(0)});
  count::pass(logits, Work::other, count::softmax + count::softmax_backward,
              count::traffic(logits, dlogits, dlogits, terms));
  logits.device().kernels().square_log_sum(terms, dlogits, logits, scale);
  return terms;
}

Tensor limit_experts(const Routed& routed, std::int64_t most, DropPolicy policy) {
  const Door door("limit_experts", routed.experts);
  check_routed(door, routed);
  if (most < 0) door.refuse(Kind::usage, most, " tokens an expert");
  Tensor kept = empty_like(routed.experts);
  count::pass(kept, Work::other, count::add, count::traffic(routed.experts, routed.weights, kept));
  kept.device().kernels().limit_experts(kept, routed, most, policy);
  return kept;
}

void follow_counts(const Tensor& bias, const Tensor& counts, float rate) {
  const Door door("follow_counts", bias);
  door.typed("bias", bias, Dtype::f32).ranked("bias", bias, 1, 1).contiguous("bias", bias);
  door.holds("counts", counts, Dtype::f32, bias.shape()).contiguous("counts", counts);
  count::pass(bias, Work::other, count::add, count::traffic(bias, bias, counts));
  bias.device().kernels().follow_counts(bias, counts, rate);
}

RowPlan plan_rows(const Tensor& experts, std::int64_t count, std::int64_t room) {
  const Door door("plan_rows", experts);
  check_experts(door, experts);
  if (experts.elements() > std::numeric_limits<std::int32_t>::max())
    door.refuse(Kind::shape, experts.elements(), " choices are more than 31 bits can number");
  if (room < 0) door.refuse(Kind::usage, "room for ", room, " rows an expert");
  Device& device = experts.device();
  const std::int64_t rows = room > 0 ? count * room : experts.elements();
  RowPlan out{empty(device, {rows}, Dtype::i32), empty(device, {rows}, Dtype::i32),
              empty(device, {count + 1}, Dtype::i64)};
  count::pass(experts, Work::other, count::add, count::traffic(experts, out.tokens, out.slots, out.offsets));
  device.kernels().plan_rows(out, experts, room);
  return out;
}

}  // namespace weft::ops
