// The order of a step: zero, forward and backward, reduce, look at the norm, clip, update.
//
// All but the look is asked of the device and not waited for. What is looked at is read at once: losses, norm
// and counts; then the host decides whether and how far to go. Counting tokens are the host's business from
// the start, where it made the batch.
#include "weft/train/step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "weft/mesh/samples.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/optim/norms.h"
#include "weft/optim/score_clip.h"
#include "weft/tensor/host.h"
#include "weft/train/replica.h"
#include "weft/train/step_numbers.h"

namespace weft {

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

/// Of each microbatch what a field adds up to: f64 [microbatches].
Tensor sums_of(std::span<const Batch> microbatches, Tensor Batch::*field) {
  const Tensor sums = empty((microbatches.front().*field).device(), {std::ssize(microbatches)}, Dtype::f64);
  for (std::int64_t i = 0; i < std::ssize(microbatches); ++i)
    ops::copy_into(sums.slice(0, i, 1), ops::sum(microbatches[std::size_t(i)].*field));
  return sums;
}

double sum_of(std::span<const double> counts) { return std::accumulate(counts.begin(), counts.end(), 0.0); }

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
void Replica::count_tokens(std::span<const Batch> microbatches) {
  int depths = 0;
  for (const NamedLoss& loss : losses_) depths = std::max(depths, loss.ahead);
  ahead_.count(microbatches, depths, mesh_.along(Axis::cp));
  counts_.clear();
  for (const Batch& batch : microbatches)
    if (batch.counted) counts_.push_back(*batch.counted);
  if (counts_.size() == microbatches.size()) return;
  counts_.assign(microbatches.size(), 0);
  const Tensor all = sums_of(microbatches, &Batch::mask);
  mesh_.along(Axis::cp).all_reduce(all, Reduce::sum).wait();
  read(all, std::span<double>(counts_));
}

/// What divides a loss that is such a mean.
double Replica::terms_of(LossMean mean, const Whole& whole) const {
  const double microbatches = double(whole.microbatches) * sample_ranks(mesh_.layout());
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
          .timekeeper = nullptr,
          .pay_meanwhile = config_.parallel.delay_weight_grads};
}

void Replica::measure(StepNumbers& numbers, int microbatch, const Pass& pass) const {
  for (const Measured& measured : pass.losses()) {
    const NamedLoss& loss = losses_[std::size_t(measured.loss)];
    const float share = loss.mean != LossMean::microbatches ? 1
                        : loss.ahead > 0                    ? ahead_.share_of(loss.ahead, microbatch)
                                                            : shares_[std::size_t(microbatch)];
    numbers.add(std::size_t(measured.loss), measured.terms, share);
  }
}

Look Replica::looks_at() const { return optimizer_->wants_sums() ? Look::grads : Look::own_grads; }

// Here the host waits, for the last that was asked for.
void Replica::look(StepNumbers& numbers, const StepOrder& order, StepReport& report) {
  numbers.read();
  if (!routing_.empty()) {
    routing_.receive();
    report.routing = &routing_;
  }
  scores_.receive();
  if (scores_.wanted()) report.greatest_score = scores_.greatest();
  report.tokens = numbers.tokens();
  const Whole whole{counts_.size(), order.together, report.tokens, numbers.samples()};
  report.losses = ByLoss<double>(losses_.size());
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const double count = terms_of(losses_[i].mean, whole);
    report.losses[i] = count > 0 ? numbers.loss(i) / count : 0;
  }
  const bool finite = std::ranges::all_of(report.losses, [](double loss) { return std::isfinite(loss); });
  report.loss_finite = finite && !order.fault;
  report.grad_norm = norm_of(numbers.read_squares(), weights_, looks_at()) / report.loss_scale;
  // No factor follows from a score that is no number.
  report.scores_finite =
      !config_.optimizer.qk_clip.on || !std::isinf(*report.greatest_score) || *report.greatest_score < 0;
  report.applied = report.loss_finite && std::isfinite(report.grad_norm) && report.scores_finite;
  if (order.count_zeros) report.zeros = std::int64_t(sum_of(numbers.read_zeros()));
}

void Replica::update(const StepOrder& order, StepReport& report) {
  const double clip = clip_factor(report.grad_norm, order.clip);
  optimizer_->update({.rate = order.rate,
                      .ends_rate = order.ends_rate,
                      .width_rate = order.width_rate,
                      .width = width_of(config_.model),
                      .decay = order.decay,
                      .grad_scale = clip / report.loss_scale,
                      .betas = order.betas});
  clip_scores();
  if (!order.params_norm) return;
  finish_update();
  report.params_norm = global_norm(weights_, Look::masters);
}

void Replica::clip_scores() {
  const QkClipConfig& clip = config_.optimizer.qk_clip;
  if (!clip.on) return;
  const ScoreClip how{.threshold = clip.threshold,
                      .alpha = clip.alpha,
                      .greatest = scores_.all(),
                      .heads = config_.model.heads};
  if (!how.acts()) return;
  finish_update();
  weft::clip_scores(weights_, how);
}

void Replica::zero_grads() {
  if (due_)
    due_->zero_grads();
  else
    weights_.zero_grads();
}

StepReport Replica::step(std::span<const Batch> microbatches, const StepOrder& order) {
  prepare(For::training, microbatches.size());
  StepReport report;
  report.loss_scale = scaler_ ? scaler_->scale() : 1;
  count_tokens(microbatches);
  double tokens = sum_of(counts_);
  StepNumbers numbers(device_, mesh_, losses_.size());
  numbers.count_tokens(tokens);
  numbers.count_samples(samples_of(microbatches, 1));
  if (order.per_token) mesh_.along(sample_axes).agree({&tokens, 1}, Reduce::sum);
  const int data_ranks = sample_ranks(mesh_.layout());
  const double samples = samples_of(microbatches, data_ranks);
  report.tokens = tokens;
  set_loss_factors(factors_, counts_, order, {report.loss_scale, tokens, samples, data_ranks});
  weigh_balance(microbatches, order, report);
  ahead_.weigh(factors_, counts_, order.together);
  set_shares(shares_, counts_, order.together);
  ahead_.share(counts_, order.together);
  zero_grads();
  begin_routing();
  fp8_.begin_step();
  reduction_.begin(int(microbatches.size()),
                   optimizer_->wants_sums() ? GradsOf::all_ranks : GradsOf::own_samples);
  StepPlace place = place_of(order);
  place.greatest_scores = scores_.begin_step();
  pipe::Runner::Order work = work_on(microbatches, factors_, place);
  if (order.timers && order.timers->level() > 1) work.timekeeper = order.timers;
  Laps laps(order.timers, device_);
  laps.take(StepPart::forward_backward, [&] {
    runner_->run(work, [&](int microbatch, const Pass& pass) { measure(numbers, microbatch, pass); });
  });
  laps.take(StepPart::all_grads_sync, [&] { reduction_.finish(); });
  if (tied_) laps.take(StepPart::embedding_grads, [&] { tied_->add_gradients(); });
  numbers.everywhere();
  laps.skip();
  laps.take(StepPart::clip, [&] { sum_squares_into(numbers.squares(), weights_, looks_at()); });
  if (order.count_zeros)
    laps.take(StepPart::count_zeros, [&] { count_zeros_into(numbers.zeros(), weights_); });
  collect_routing();
  scores_.collect();
  look(numbers, order, report);
  report.as_expected = !order.expected || same_bits(*order.expected, report);
  report.too_large = report.applied && report.loss() > order.most_loss;
  if (order.only_look || !report.as_expected || report.too_large) {
    report.applied = false;
    return report;
  }
  if (scaler_) scaler_->update(report.applied);
  report.next_loss_scale = scaler_ ? scaler_->scale() : 1;
  if (report.applied) follow_routing();
  if (report.applied) fp8_.follow();
  laps.take(StepPart::inner_step, [&] {
    if (report.applied) update(order, report);
  });
  return report;
}

void Replica::evaluate(std::span<const Batch> microbatches, Evaluation& into, int together) {
  prepare(For::evaluation, microbatches.size());
  count_tokens(microbatches);
  set_shares(shares_, counts_, together);
  ahead_.share(counts_, together);
  const std::vector<LossFactors> factors(microbatches.size());
  StepNumbers numbers(device_, mesh_, losses_.size());
  numbers.count_tokens(sum_of(counts_));
  // Samples that only fill a batch up count nowhere.
  if (microbatches.front().sentence_mask)
    numbers.count_samples(sums_of(microbatches, &Batch::sentence_mask));
  else
    numbers.count_samples(samples_of(microbatches, 1));
  runner_->run(work_on(microbatches, factors, {.training = false}),
               [&](int microbatch, const Pass& pass) { measure(numbers, microbatch, pass); });
  numbers.everywhere();
  numbers.read();
  const Whole whole{counts_.size(), together, numbers.tokens(), numbers.samples()};
  if (into.empty()) into = Evaluation(losses_.size());
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    into[i].sum += numbers.loss(i);
    into[i].count += terms_of(losses_[i].mean, whole);
  }
}

}  // namespace weft
