// The order of a step: zero, forward and backward, reduce, look at the norm, clip, update.
#include "weft/train/step.h"

#include <cmath>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// Losses and counting tokens of a step, as sums that no order of microbatches shows in.
class LossSums {
 public:
  explicit LossSums(Device& device) : losses_(ops::exact_zero(device)) {}
  void add(const Pass& pass) { ops::sum_exact_into(losses_, pass.losses()); }
  double losses() const { return ops::exact_number(losses_); }

 private:
  Tensor losses_;
};

std::vector<double> counting_tokens(std::span<const Batch> microbatches) {
  std::vector<double> out;
  for (const Batch& batch : microbatches) out.push_back(number(ops::sum(batch.mask)));
  return out;
}

double total(std::span<const double> counts) {
  double sum = 0;
  for (const double count : counts) sum += count;
  return sum;
}

/// The factor of each microbatch's losses in the objective, loss scale included.
std::vector<float> loss_factors(std::span<const double> counts, double scale, bool per_token) {
  const double all = total(counts);
  std::vector<float> out;
  for (const double count : counts) {
    const double tokens = per_token ? all : count * double(counts.size());
    out.push_back(tokens > 0 ? float(scale / tokens) : 0);
  }
  return out;
}

pipe::Parcel parcel_of(const Workshop& shop, const Batch& batch);

pipe::Runner::Order runner_order(const Workshop& shop, std::span<const Batch> microbatches,
                                 std::span<const float> factors, const StepPlace& place) {
  return {.microbatches = microbatches,
          .loss_factors = factors,
          .place = place,
          .parcel = parcel_of(shop, microbatches.front())};
}

// Stages exchange hidden states; a pipeline of one exchanges nothing.
pipe::Parcel parcel_of(const Workshop&, const Batch&) { return {}; }

StepPlace place_of(const StepOrder& order) {
  return {.seed = order.seed, .step = std::uint64_t(order.step), .training = true};
}

void update(const Workshop& shop, const StepOrder& order, StepReport& report) {
  const double clip = clip_factor(report.grad_norm, order.clip);
  shop.optimizer.update({.rate = order.rate,
                         .ends_rate = order.ends_rate,
                         .decay = order.decay,
                         .grad_scale = clip / report.loss_scale});
  if (order.params_norm) report.params_norm = global_norm(shop.weights, Look::masters, {});
}

}  // namespace

StepReport train_step(const Workshop& shop, std::span<const Batch> microbatches, const StepOrder& order) {
  StepReport report;
  report.loss_scale = shop.scaler ? shop.scaler->scale() : 1;
  const std::vector<double> counts = counting_tokens(microbatches);
  const std::vector<float> factors = loss_factors(counts, report.loss_scale, order.per_token);
  LossSums sums(shop.weights.device());
  shop.weights.zero_grads();
  shop.runner.run(runner_order(shop, microbatches, factors, place_of(order)),
                  [&](int, const Pass& pass) { sums.add(pass); });
  report.tokens = total(counts);
  report.loss = report.tokens > 0 ? sums.losses() / report.tokens : 0;
  report.loss_finite = std::isfinite(report.loss);
  report.grad_norm = global_norm(shop.weights, Look::grads, {}) / report.loss_scale;
  report.applied = report.loss_finite && std::isfinite(report.grad_norm);
  if (order.count_zeros) report.zeros = global_zeros(shop.weights, {});
  if (shop.scaler) shop.scaler->update(report.applied);
  if (report.applied) update(shop, order, report);
  return report;
}

void evaluate_step(const Workshop& shop, std::span<const Batch> microbatches, Evaluation& into) {
  const std::vector<float> factors(microbatches.size(), 1.F);
  LossSums sums(shop.weights.device());
  shop.runner.run(runner_order(shop, microbatches, factors, {.training = false}),
                  [&](int, const Pass& pass) { sums.add(pass); });
  into.loss_sum += sums.losses();
  into.tokens += total(counting_tokens(microbatches));
}

}  // namespace weft
