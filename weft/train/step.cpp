// The order of a step: zero, forward and backward, reduce, look at the norm, clip, update.
#include "weft/train/step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/optim/norms.h"
#include "weft/tensor/exact_sum.h"
#include "weft/tensor/host.h"
#include "weft/train/replica.h"

namespace weft {

/// Losses of a step, as sums that no order of microbatches shows in.
class Replica::Sums {
 public:
  explicit Sums(const Replica& replica)
      : replica_(replica),
        digits_(
            ops::zeros(replica.device_, {std::int64_t(replica.losses_.size()), exact_digits}, Dtype::f64)) {}

  void add(int microbatch, const Pass& pass) const {
    for (const Measured& measured : pass.losses()) {
      const bool shared = replica_.losses_[std::size_t(measured.loss)].mean == LossMean::microbatches;
      ops::sum_exact_into(
          digits_of(measured.loss),
          shared ? scaled(measured.terms, replica_.shares_[std::size_t(microbatch)]) : measured.terms);
    }
  }
  /// Of all ranks that read other samples or hold other layers: whoever measured nothing has zeros.
  void everywhere() const {
    const ProcessMesh& mesh = replica_.mesh_;
    mesh.along({Axis::dp, Axis::cp}).all_reduce(digits_, Reduce::sum).wait();
    mesh.along(Axis::pp).all_reduce(digits_, Reduce::sum).wait();
  }
  double operator[](std::size_t loss) const { return ops::exact_number(digits_of(int(loss))); }

 private:
  static Tensor scaled(const Tensor& terms, float share) {
    const Tensor out = empty_like(terms);
    ops::copy_into(out, terms);
    ops::scale_in_place(out, share);
    return out;
  }
  Tensor digits_of(int loss) const { return digits_.slice(0, loss, 1).view({exact_digits}); }

  const Replica& replica_;
  Tensor digits_;  // f64 [losses, exact_digits]
};

namespace {

/// Counting tokens of the microbatches that share a mean with this one.
double tokens_together(std::span<const double> counts, std::size_t microbatch, int together) {
  const auto first =
      counts.begin() + std::ptrdiff_t(microbatch / std::size_t(together) * std::size_t(together));
  return std::accumulate(first, first + together, 0.0);
}

/// The samples of a step, on all ranks that read other ones.
double samples_of(std::span<const Batch> microbatches, int data_ranks) {
  double samples = 0;
  for (const Batch& batch : microbatches) samples += double(batch.samples.elements());
  return samples * data_ranks;
}

/// What the losses of a step weigh in its objective.
struct Weighing {
  double scale = 1, tokens = 0, samples = 0;  // of the global batch
  int data_ranks = 1;
};

/// The factors of each microbatch's losses in the objective, loss scale included.
void set_loss_factors(std::vector<LossFactors>& factors, std::span<const double> counts,
                      const StepOrder& order, const Weighing& weigh) {
  factors.clear();
  const std::size_t means_here = counts.size() / std::size_t(order.together);
  const auto means = double(means_here) * weigh.data_ranks;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double count = tokens_together(counts, i, order.together);
    const double tokens = order.per_token ? weigh.tokens : count * means;
    factors.push_back({.token = tokens > 0 ? float(weigh.scale / tokens) : 0,
                       .sample = float(weigh.scale / weigh.samples),
                       .pass = float(weigh.scale / (double(counts.size()) * weigh.data_ranks))});
  }
}

/// A token's share in the mean of the microbatch it stands in; none where no token counts. Without such means
/// (together 0) all shares are 1.
void set_shares(std::vector<float>& shares, std::span<const double> counts, int together) {
  shares.clear();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double count = together > 0 ? tokens_together(counts, i, together) : 1;
    shares.push_back(count > 0 ? float(1 / count) : 0);
  }
}

/// Those that only fill a batch up count nowhere.
double samples_that_count(const Batch& batch) {
  return batch.sentence_mask ? number(ops::sum(batch.sentence_mask)) : double(batch.samples.elements());
}

bool same_bits(const StepReport& a, const StepReport& b) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  return std::equal(a.losses.begin(), a.losses.end(), b.losses.begin(), b.losses.end(),
                    [&](double x, double y) { return bits(x) == bits(y); }) &&
         bits(a.grad_norm) == bits(b.grad_norm);
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

/// What divides a loss that is such a mean.
double Replica::terms_of(LossMean mean, const Whole& whole) const {
  const double microbatches = double(whole.microbatches) * mesh_.layout().degree(Axis::dp);
  switch (mean) {
    case LossMean::tokens:
      return whole.tokens;
    case LossMean::microbatches:
      return whole.together > 0 ? microbatches / whole.together : whole.tokens;
    case LossMean::samples:
      return whole.samples;
    case LossMean::passes:
      return microbatches;
  }
  return 0;
}

pipe::Runner::Order Replica::work_on(std::span<const Batch> microbatches,
                                     std::span<const LossFactors> factors, const StepPlace& place) {
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
                      .width_rate = order.width_rate,
                      .width = width_of(config_.model),
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
  const int data_ranks = mesh_.layout().degree(Axis::dp);
  const double samples = samples_of(microbatches, data_ranks);
  set_loss_factors(factors_, counts_, order, {report.loss_scale, report.tokens, samples, data_ranks});
  set_shares(shares_, counts_, order.together);
  const Sums sums(*this);
  weights_.zero_grads();
  const bool sums_wanted = optimizer_->wants_sums();
  reduction_.begin(int(microbatches.size()), sums_wanted ? GradsOf::all_ranks : GradsOf::own_samples);
  pipe::Runner::Order work = work_on(microbatches, factors_, place_of(order));
  if (order.timers && order.timers->level() > 1) work.timekeeper = order.timers;
  Laps laps(order.timers);
  runner_->run(work, [&](int microbatch, const Pass& pass) { sums.add(microbatch, pass); });
  laps.end(StepPart::forward_backward);
  reduction_.finish();
  laps.end(StepPart::all_grads_sync);
  if (tied_) {
    tied_->add_gradients();
    laps.end(StepPart::embedding_grads);
  }
  sums.everywhere();
  report.losses = ByLoss<double>(losses_.size());
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const double count = terms_of(losses_[i].mean, {counts_.size(), order.together, report.tokens, samples});
    report.losses[i] = count > 0 ? sums[i] / count : 0;
  }
  const bool finite = std::ranges::all_of(report.losses, [](double loss) { return std::isfinite(loss); });
  report.loss_finite = finite && !order.fault;
  laps.skip();
  report.grad_norm = global_norm(weights_, sums_wanted ? Look::grads : Look::own_grads) / report.loss_scale;
  report.applied = report.loss_finite && std::isfinite(report.grad_norm);
  laps.end(StepPart::clip);
  if (order.count_zeros) {
    report.zeros = global_zeros(weights_);
    laps.end(StepPart::count_zeros);
  }
  report.as_expected = !order.expected || same_bits(*order.expected, report);
  if (order.only_look || !report.as_expected) {
    report.applied = false;
    return report;
  }
  if (scaler_) scaler_->update(report.applied);
  if (report.applied) update(order, report);
  laps.end(StepPart::inner_step);
  return report;
}

void Replica::evaluate(std::span<const Batch> microbatches, Evaluation& into, int together) {
  prepare(For::evaluation, microbatches.size());
  std::vector<double> counts, samples;
  count_tokens(counts, microbatches);
  set_shares(shares_, counts, together);
  const std::vector<LossFactors> factors(microbatches.size());
  const Sums sums(*this);
  runner_->run(work_on(microbatches, factors, {.training = false}),
               [&](int microbatch, const Pass& pass) { sums.add(microbatch, pass); });
  sums.everywhere();
  for (const Batch& batch : microbatches) samples.push_back(samples_that_count(batch));
  const Whole whole{counts.size(), together, over_data_ranks(counts), over_data_ranks(samples)};
  if (into.empty()) into = Evaluation(losses_.size());
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    into[i].sum += sums[i];
    into[i].count += terms_of(losses_[i].mean, whole);
  }
}

}  // namespace weft
