// The order of a step: zero, forward and backward, reduce, look at the norm, clip, update.
#include "weft/train/step.h"

#include <cmath>
#include <numeric>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/optim/norms.h"
#include "weft/tensor/host.h"
#include "weft/train/replica.h"

namespace weft {

/// Losses of a step, as sums that no order of microbatches shows in.
struct Replica::Sums {
  explicit Sums(Device& device) : losses(ops::exact_zero(device)) {}
  void add(const Pass& pass) const { ops::sum_exact_into(losses, pass.losses()); }
  /// Of all ranks that read other samples; the last stage, which alone knows them, tells the others.
  double everywhere(const ProcessMesh& mesh, int last_home) const {
    mesh.along({Axis::dp, Axis::cp}).all_reduce(losses, Reduce::sum).wait();
    mesh.along(Axis::pp).broadcast(losses, last_home).wait();
    return ops::exact_number(losses);
  }
  Tensor losses;
};

namespace {

/// The factor of each microbatch's losses in the objective, loss scale included.
void set_loss_factors(std::vector<float>& factors, std::span<const double> counts, const StepReport& report,
                      const StepOrder& order, int data_ranks) {
  factors.clear();
  const auto together = std::size_t(order.together);
  const std::size_t means_here = counts.size() / together;
  const auto means = double(means_here) * data_ranks;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto first = counts.begin() + std::ptrdiff_t(i / together * together);
    const double count = std::accumulate(first, first + order.together, 0.0);
    const double tokens = order.per_token ? report.tokens : count * means;
    factors.push_back(tokens > 0 ? float(report.loss_scale / tokens) : 0);
  }
}

StepPlace place_of(const StepOrder& order) {
  return {.seed = order.seed, .step = std::uint64_t(order.step), .training = true};
}

}  // namespace

/// Of every microbatch, whole sequences.
void Replica::count_tokens(std::vector<double>& counts, std::span<const Batch> microbatches) const {
  counts.clear();
  for (const Batch& batch : microbatches) counts.push_back(number(ops::sum(batch.mask)));
  Communicator& context = mesh_.along(Axis::cp);
  if (context.size() == 1) return;
  const Tensor all = from_host(device_, {std::int64_t(counts.size())}, counts);
  context.all_reduce(all, Reduce::sum).wait();
  counts = to_host<double>(all);
}

double Replica::over_data_ranks(std::span<const double> counts) const {
  double sum = 0;
  for (const double count : counts) sum += count;
  const Tensor all = ops::zeros(device_, {1}, Dtype::f64);
  ops::fill(all, sum);
  mesh_.along(Axis::dp).all_reduce(all, Reduce::sum).wait();
  return number(all);
}

pipe::Runner::Order Replica::work_on(std::span<const Batch> microbatches, std::span<const float> factors,
                                     const StepPlace& place) {
  pack(microbatches.front());
  return {.microbatches = microbatches,
          .loss_factors = factors,
          .place = place,
          .parcels = parcels_,
          .watch = nullptr,
          .timekeeper = nullptr};
}

void Replica::update(const StepOrder& order, StepReport& report) {
  const double clip = clip_factor(report.grad_norm, order.clip);
  optimizer_->update({.rate = order.rate,
                      .ends_rate = order.ends_rate,
                      .decay = order.decay,
                      .grad_scale = clip / report.loss_scale});
  if (order.params_norm) report.params_norm = global_norm(weights_, Look::masters);
}

StepReport Replica::step(std::span<const Batch> microbatches, const StepOrder& order) {
  prepare(For::training, microbatches.size());
  StepReport report;
  report.loss_scale = scaler_ ? scaler_->scale() : 1;
  count_tokens(counts_, microbatches);
  report.tokens = over_data_ranks(counts_);
  set_loss_factors(factors_, counts_, report, order, mesh_.layout().degree(Axis::dp));
  const Sums sums(device_);
  weights_.zero_grads();
  const bool sums_wanted = optimizer_->wants_sums();
  reduction_.begin(int(microbatches.size()), sums_wanted ? GradsOf::all_ranks : GradsOf::own_samples);
  pipe::Runner::Order work = work_on(microbatches, factors_, place_of(order));
  if (order.timers && order.timers->level() > 1) work.timekeeper = order.timers;
  Laps laps(order.timers);
  runner_->run(work, [&](int, const Pass& pass) { sums.add(pass); });
  laps.end(StepPart::forward_backward);
  reduction_.finish();
  laps.end(StepPart::all_grads_sync);
  if (tied_) {
    tied_->add_gradients();
    laps.end(StepPart::embedding_grads);
  }
  report.loss = report.tokens > 0 ? sums.everywhere(mesh_, homes_.back()) / report.tokens : 0;
  report.loss_finite = std::isfinite(report.loss) && !order.fault;
  laps.skip();
  report.grad_norm = global_norm(weights_, sums_wanted ? Look::grads : Look::own_grads) / report.loss_scale;
  report.applied = report.loss_finite && std::isfinite(report.grad_norm);
  laps.end(StepPart::clip);
  if (order.count_zeros) {
    report.zeros = global_zeros(weights_);
    laps.end(StepPart::count_zeros);
  }
  if (scaler_) scaler_->update(report.applied);
  if (report.applied) update(order, report);
  laps.end(StepPart::inner_step);
  return report;
}

void Replica::evaluate(std::span<const Batch> microbatches, Evaluation& into) {
  prepare(For::evaluation, microbatches.size());
  const std::vector<float> factors(microbatches.size(), 1.F);
  const Sums sums(device_);
  runner_->run(work_on(microbatches, factors, {.training = false}),
               [&](int, const Pass& pass) { sums.add(pass); });
  into.loss_sum += sums.everywhere(mesh_, homes_.back());
  std::vector<double> counts;
  count_tokens(counts, microbatches);
  into.tokens += over_data_ranks(counts);
}

}  // namespace weft
