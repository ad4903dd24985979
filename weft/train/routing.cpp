// Tables for all layers, so that ranks speak a few times a step, however many layers there are.
#include "weft/train/routing.h"

#include <algorithm>
#include <cmath>

#include "weft/mesh/samples.h"
#include "weft/model/experts.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/exact_sum.h"
#include "weft/tensor/host.h"
#include "weft/train/replica.h"

namespace weft {

RoutingTable::RoutingTable(const ModelConfig& model, const ProcessMesh& mesh, Device& device)
    : mesh_(mesh), device_(device) {
  if (model.experts.count == 0) return;
  layers_ = model.layers + model.ahead.layers();
  experts_ = model.experts.count;
  losses_ = int(balancing_losses(model).size());
  width_ = experts_ + 1;
  const auto layers = std::size_t(layers_);
  host_counts_.resize(layers * std::size_t(width_));
  host_told_.resize(layers * std::size_t(losses_) * exact_digits);
}

void RoutingTable::collect(std::span<const Stage* const> stages, int passes) {
  passes_ = passes;
  // Theirs for good: a table that took the place of the last one would lie elsewhere, and so would all after
  // it.
  if (!counts_) counts_ = weft::empty(device_, {layers_, width_});
  ops::fill(counts_, 0);
  if (losses_ > 0) {
    if (!told_) told_ = weft::empty(device_, {layers_, losses_ * exact_digits}, Dtype::f64);
    ops::fill(told_, 0);
  }
  const auto put = [this](Router& router) {
    const Tensor row = counts_.at(0, router.layer());
    const RouterCounts& counts = router.counts();
    ops::copy_into(row.slice(0, 0, experts_), counts.chosen);
    ops::fill(row.slice(0, experts_, 1), counts.asked);
    if (counts.told) ops::copy_into(told_.at(0, router.layer()), counts.told.view({losses_ * exact_digits}));
  };
  for (const Stage* stage : stages) stage->each_router(put);
  for (const Tensor& all : {counts_, told_}) {
    if (!all) continue;
    mesh_.along(stage_axes).all_reduce(all, Reduce::sum).wait();
    mesh_.along(Axis::pp).all_reduce(all, Reduce::sum).wait();
  }
  arrives_ = ask_for(counts_, std::span<float>(host_counts_));
  if (told_) arrives_ = ask_for(told_, std::span<double>(host_told_));
}

Tensor RoutingTable::counts(int layer) const { return counts_.at(0, layer).slice(0, 0, experts_); }

std::span<const float> RoutingTable::rows(int layer) const {
  if (asked(layer) == 0) return {};
  return std::span(host_counts_).subspan(std::size_t(layer * width_), std::size_t(experts_));
}

ExpertLoad RoutingTable::load(int layer) const {
  const std::span<const float> each = rows(layer);
  ExpertLoad out;
  double sum = 0;
  for (const float count : each) sum += double(count);
  if (sum == 0) return out;
  out.busiest = double(*std::ranges::max_element(each)) * experts_ / sum;
  double entropy = 0;
  for (const double count : each)
    if (count > 0) entropy -= count / sum * std::log(count / sum);
  if (experts_ > 1) out.entropy = entropy / std::log(double(experts_));
  out.dropped = 1 - sum / asked(layer);
  return out;
}

ExpertLoad RoutingTable::load() const {
  ExpertLoad out{.busiest = 0, .entropy = 0, .dropped = 0};
  int some = 0;
  for (int layer = 0; layer < layers_; ++layer) {
    if (rows(layer).empty()) continue;
    const ExpertLoad here = load(layer);
    out.busiest = std::max(out.busiest, here.busiest);
    out.entropy += here.entropy;
    out.dropped += here.dropped;
    ++some;
  }
  if (some == 0) return {};
  out.entropy /= some;
  out.dropped /= some;
  return out;
}

double RoutingTable::loss(int layer, int i) const {
  const std::size_t at = std::size_t(layer) * std::size_t(losses_) + std::size_t(i);
  const auto digits = std::span(host_told_).subspan(at * exact_digits);
  return exact_value(digits.first<exact_digits>()) / passes_;
}

// Balancing losses are means over a microbatch. Where the objective is a mean over the tokens of the global
// batch they weigh as much as the microbatch has tokens, masked ones too: Megatron's rule.
void Replica::weigh_balance(std::span<const Batch> microbatches, const StepOrder& order,
                            const StepReport& report) {
  const double ranks = mesh_.layout().degree(Axis::cp);
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    const double tokens = double(microbatches[i].text.tokens.elements()) * ranks;
    factors_[i].balance = !order.per_token    ? factors_[i].pass
                          : report.tokens > 0 ? float(report.loss_scale * tokens / report.tokens)
                                              : 0;
  }
}

void Replica::begin_routing() const {
  for (const auto& [number, stage] : stages_) stage.each_router([](Router& router) { router.begin_step(); });
}

void Replica::collect_routing() {
  if (routing_.empty()) return;
  routed_stages_.clear();
  for (const auto& [number, stage] : stages_) routed_stages_.push_back(&stage);
  routing_.collect(routed_stages_, int(counts_.size()) * sample_ranks(mesh_.layout()));
}

void Replica::follow_routing() const {
  for (const auto& [number, stage] : stages_)
    stage.each_router([this](Router& router) {
      if (router.follows()) router.follow(routing_.counts(router.layer()));
    });
}

}  // namespace weft
