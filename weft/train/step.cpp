// The order of a step: zero, forward and backward, reduce, look at the norm, clip, update.
#include "weft/train/step.h"

#include <array>
#include <cmath>
#include <numeric>

#include "weft/base/number.h"
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
  /// Of all ranks that read other samples; the last stage, which alone knows them, tells the others.
  double losses(const Workshop& shop) const {
    shop.mesh.along({Axis::dp, Axis::cp}).all_reduce(losses_, Reduce::sum).wait();
    shop.mesh.along(Axis::pp).broadcast(losses_, last_home(shop)).wait();
    return ops::exact_number(losses_);
  }

 private:
  Tensor losses_;
};

/// Of every microbatch, whole sequences.
void count_tokens(std::vector<double>& counts, std::span<const Batch> microbatches, const Workshop& shop) {
  counts.clear();
  for (const Batch& batch : microbatches) counts.push_back(number(ops::sum(batch.mask)));
  Communicator& context = shop.mesh.along(Axis::cp);
  if (context.size() == 1) return;
  const Tensor all = from_host(shop.weights.device(), {std::int64_t(counts.size())}, counts);
  context.all_reduce(all, Reduce::sum).wait();
  counts = to_host<double>(all);
}

/// Of all ranks that read other samples.
double total(std::span<const double> counts, const Workshop& shop) {
  double sum = 0;
  for (const double count : counts) sum += count;
  const Tensor all = ops::zeros(shop.weights.device(), {1}, Dtype::f64);
  ops::fill(all, sum);
  shop.mesh.along(Axis::dp).all_reduce(all, Reduce::sum).wait();
  return number(all);
}

/// The factor of each microbatch's losses in the objective, loss scale included.
void set_loss_factors(StepRoom& room, const StepReport& report, const StepOrder& order, int data_ranks) {
  room.factors.clear();
  const auto together = std::size_t(order.together);
  const std::size_t means_here = room.counts.size() / together;
  const auto means = double(means_here) * data_ranks;
  for (std::size_t i = 0; i < room.counts.size(); ++i) {
    const auto first = room.counts.begin() + std::ptrdiff_t(i / together * together);
    const double count = std::accumulate(first, first + order.together, 0.0);
    const double tokens = order.per_token ? report.tokens : count * means;
    room.factors.push_back(tokens > 0 ? float(report.loss_scale / tokens) : 0);
  }
}

pipe::Runner::Order runner_order(const Workshop& shop, std::span<const Batch> microbatches,
                                 std::span<const float> factors, const StepPlace& place) {
  return {.microbatches = microbatches,
          .loss_factors = factors,
          .place = place,
          .parcel = parcel_of(shop, microbatches.front()),
          .watch = nullptr,
          .timekeeper = nullptr};
}

/// The circles over which a model's weights are cut.
std::array<Communicator*, 1> model_circles(const ProcessMesh& mesh) {
  return {&mesh.along({Axis::tp, Axis::pp})};
}

StepPlace place_of(const StepOrder& order) {
  return {.seed = order.seed, .step = std::uint64_t(order.step), .training = true};
}

void update(const Workshop& shop, const StepOrder& order, StepReport& report) {
  const double clip = clip_factor(report.grad_norm, order.clip);
  shop.optimizer.update({.rate = order.rate,
                         .ends_rate = order.ends_rate,
                         .decay = order.decay,
                         .grad_scale = clip / report.loss_scale});
  if (order.params_norm)
    report.params_norm = global_norm(shop.weights, Look::masters, model_circles(shop.mesh));
}

}  // namespace

int last_home(const Workshop& shop) { return shop.runner.schedule().home.back(); }

pipe::Parcel parcel_of(const Workshop& shop, const Batch& batch) {
  const bool cut = shop.wire.between == Between::sequence_cut;
  const int parts = cut ? shop.mesh.layout().degree(Axis::tp) : 1;
  return {.hidden = {exact(batch.tokens.dim(0), std::int64_t(parts)), batch.tokens.dim(1), shop.wire.width},
          .dtype = shop.wire.dtype};
}

StepReport train_step(const Workshop& shop, std::span<const Batch> microbatches, const StepOrder& order) {
  StepReport report;
  report.loss_scale = shop.scaler ? shop.scaler->scale() : 1;
  StepRoom own;
  StepRoom& room = shop.room ? *shop.room : own;
  count_tokens(room.counts, microbatches, shop);
  report.tokens = total(room.counts, shop);
  set_loss_factors(room, report, order, shop.mesh.layout().degree(Axis::dp));
  LossSums sums(shop.weights.device());
  shop.weights.zero_grads();
  shop.reduction.begin(int(microbatches.size()));
  pipe::Runner::Order work = runner_order(shop, microbatches, room.factors, place_of(order));
  if (order.timers && order.timers->level() > 1) work.timekeeper = order.timers;
  Laps laps(order.timers);
  shop.runner.run(work, [&](int, const Pass& pass) { sums.add(pass); });
  laps.end(Part::forward_backward);
  shop.reduction.finish();
  laps.end(Part::all_grads_sync);
  if (shop.tied) {
    shop.tied->add_gradients();
    laps.end(Part::embedding_grads);
  }
  const auto circles = model_circles(shop.mesh);
  report.loss = report.tokens > 0 ? sums.losses(shop) / report.tokens : 0;
  report.loss_finite = std::isfinite(report.loss);
  laps.skip();
  report.grad_norm = global_norm(shop.weights, Look::grads, circles) / report.loss_scale;
  report.applied = report.loss_finite && std::isfinite(report.grad_norm);
  laps.end(Part::clip);
  if (order.count_zeros) {
    report.zeros = global_zeros(shop.weights, circles);
    laps.end(Part::count_zeros);
  }
  if (shop.scaler) shop.scaler->update(report.applied);
  if (report.applied) update(shop, order, report);
  laps.end(Part::inner_step);
  return report;
}

void evaluate_step(const Workshop& shop, std::span<const Batch> microbatches, Evaluation& into) {
  const std::vector<float> factors(microbatches.size(), 1.F);
  LossSums sums(shop.weights.device());
  shop.runner.run(runner_order(shop, microbatches, factors, {.training = false}),
                  [&](int, const Pass& pass) { sums.add(pass); });
  into.loss_sum += sums.losses(shop);
  std::vector<double> counts;
  count_tokens(counts, microbatches, shop);
  into.tokens += total(counts, shop);
}

}  // namespace weft
