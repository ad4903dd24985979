// 1-bit LAMB: LAMB until the second moments are known; from then on momenta of all tensors travel together in
// one bit an element, and trust ratios are those of before, changed as second moments would have changed.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "weft/ops/adam.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/optim/rules.h"
#include "weft/optim/rules/one_bit.h"
#include "weft/optim/tensor_norms.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// What is known of a tensor: the mean of its trust ratios; the last factor of it; what its momentum is
/// multiplied with before it travels (0: none has travelled yet).
struct Trust {
  float ratio = 0, factor = 1, scale = 0;
};
constexpr std::int64_t numbers_of_trust = 3;

/// Where a tensor's elements stand among those that travel together.
struct Seat {
  std::size_t letter = 0;
  std::int64_t at = 0;
};

/// Ranks that hold the same weight must round it alike: it travels with what all of them hold too. A weight
/// of two stages travels alone.
std::tuple<View, unsigned, std::string> company(const Weights& weights, const OneBitTensor& tensor) {
  const WeightBlock& block = weights.blocks()[tensor.block];
  const Parameter& parameter = *tensor.slot->parameter;
  const View view = block.kind.view;
  const Axes same = (parameter.spread.copy | parameter.spread.partial) & model_axes(view);
  unsigned axes_of_copies = 0;
  for (int axis = 0; axis < axes; ++axis)
    if (same.holds(Axis(axis)) && weights.data().mesh != nullptr &&
        weights.data().mesh->layout().degree(Axis(axis)) > 1)
      axes_of_copies |= 1U << unsigned(axis);
  const bool elsewhere = parameter.tied && weights.ties().holders(parameter.name) != nullptr;
  return {view, axes_of_copies, elsewhere ? parameter.name : ""};
}

/// No bias correction anywhere, as in the original.
class OneBitLamb final : public Optimizer {
 public:
  OneBitLamb(Weights& weights, const OptimizerConfig& config)
      : weights_(weights),
        config_(config),
        m_(weights, ".m"),
        v_(weights, ".v"),
        fresh_(weights, ".v_fresh"),
        norms_(weights, 2),
        tensors_(by_name(one_bit_tensors(weights))),
        letters_(seated()),
        mail_(weights, letters_) {
    for (const OneBitLetter& letter : letters_)
      together_.push_back(ops::zeros(weights.device(), {letter.elements}, Dtype::f32, Use::optimizer));
    const auto tensors = std::int64_t(norms_.tensors());
    table_ = ops::zeros(weights.device(), {tensors, numbers_of_trust}, Dtype::f32, Use::optimizer);
    greatest_ = ops::zeros(weights.device(), {tensors}, Dtype::f64, Use::optimizer);
    growth_.resize(std::size_t(tensors));
    trust_.resize(std::size_t(tensors));
    tell_trust();
  }

  bool wants_sums() const override { return updates_ + 1 < config_.onebit.freeze; }

  void update(const UpdateArgs& args) override {
    const bool warm = wants_sums();
    ++updates_;
    read(table_.view({table_.elements()}), flat_trust());
    if (warm)
      warm_up(args);
    else
      go_on(args);
    tell_trust();
  }

  void each_state(const VisitHeld& visit) const override {
    m_.each(weights_, visit);
    v_.each(weights_, visit);
    fresh_.each(weights_, visit);
    for (const OneBitTensor& tensor : tensors_) visit(trust_of(tensor));
    mail_.each_error(visit);
  }

 private:
  static constexpr int weight = 0, direction = 1;  // whose norm

  // ---- who travels with whom

  std::vector<OneBitTensor> by_name(std::vector<OneBitTensor> all) const {
    std::ranges::stable_sort(
        all, [this](const OneBitTensor& a, const OneBitTensor& b) { return number(a) < number(b); });
    return all;
  }
  std::size_t number(const OneBitTensor& tensor) const {
    return norms_.number(tensor.block,
                         std::size_t(tensor.slot - weights_.blocks()[tensor.block].slots.data()));
  }
  /// Seats everybody.
  std::vector<OneBitLetter> seated() {
    std::map<std::tuple<View, unsigned, std::string>, std::vector<const OneBitTensor*>> companies;
    for (const OneBitTensor& tensor : tensors_) companies[company(weights_, tensor)].push_back(&tensor);
    seats_.resize(norms_.tensors());
    std::vector<OneBitLetter> out;
    for (const auto& [who, members] : companies) {
      OneBitLetter letter{members.front()->slot->parameter, std::get<View>(who), 0};
      for (const OneBitTensor* member : members) {
        seats_[number(*member)] = {out.size(), letter.elements};
        letter.elements += member->elements();
      }
      out.push_back(letter);
    }
    return out;
  }
  Tensor among_others(std::size_t tensor, std::int64_t elements) const {
    return together_[seats_[tensor].letter].slice(0, seats_[tensor].at, elements);
  }

  // ---- numbers of tensors

  std::span<float> flat_trust() {
    return {&trust_.front().ratio, trust_.size() * std::size_t(numbers_of_trust)};
  }
  void tell_trust() { copy_to<float>(table_.view({table_.elements()}), flat_trust()); }
  /// One rank of those that hold a tensor writes what all know of it.
  Held trust_of(const OneBitTensor& tensor) const {
    const Parameter& parameter = *tensor.slot->parameter;
    const WeightBlock& block = weights_.blocks()[tensor.block];
    Shard all{.global = {numbers_of_trust}, .offset = {0}, .local = {numbers_of_trust}};
    all.replica = block.readers.rank() + (parameter.tied ? weights_.ties().copy(parameter) : 0);
    if (const ProcessMesh* mesh = weights_.data().mesh)
      all.replica += mesh->place(block.kind.view == View::dense ? Axis::tp : Axis::etp);
    return {parameter.name + ".trust",
            parameter,
            table_.at(0, std::int64_t(number(tensor))),
            {{all, 0}},
            mail_.stands_for_ranks()};
  }

  // ---- steps

  void descend(const UpdateRun& run) const {
    norms_.each_tensor(run.number, run.own, [&](const TensorRun& part) {
      const Tensor copy = run.copy ? run.copy.slice(0, part.from, part.count) : Tensor();
      const double length = run.rate * double(lengths_[part.tensor]);
      ops::descend_into(run.master.slice(0, part.from, part.count), copy,
                        run.grads.slice(0, part.from, part.count), {.rate = float(length)});
    });
  }

  void warm_up(const UpdateArgs& args) {
    norms_.clear();
    each_run(weights_, args, [&](const UpdateRun& run) {
      ops::adam_direction_into({run.master, momentum(run), variance(run), {}}, run.grads,
                               {.beta1 = float(config_.beta1),
                                .beta2 = float(config_.beta2),
                                .epsilon = float(config_.epsilon),
                                .decay = float(run.decay),
                                .grad_scale = float(args.grad_scale)});
      norms_.add(weight, run.number, run.own, run.master);
      norms_.add(direction, run.number, run.own, run.grads);
    });
    norms_.sum_over_ranks();
    lengths_.resize(trust_.size());
    for (std::size_t i = 0; i < trust_.size(); ++i) {
      const double w = norms_(i, weight), u = norms_(i, direction), keep = config_.onebit.keep;
      const double ratio = w > 0 && u > 0 ? std::clamp(w / u, config_.lamb.least, config_.lamb.most) : 1;
      lengths_[i] = float(ratio);
      if (ratio != 1) trust_[i].ratio = float(keep * double(trust_[i].ratio) + (1 - keep) * ratio);
    }
    each_run(weights_, args, [&](const UpdateRun& run) { descend(run); });
  }

  // Momenta whose elements are of one size lose least where one size stands for all.
  void begin_to_travel(const UpdateArgs& args) {
    norms_.clear();
    each_run(weights_, args, [&](const UpdateRun& run) {
      norms_.add(weight, run.number, run.own, momentum(run));
      ops::copy_into(fresh(run), variance(run));
    });
    norms_.sum_over_ranks();
    std::vector<double> sizes(letters_.size()), members(letters_.size());
    for (const OneBitTensor& tensor : tensors_) {
      sizes[seats_[number(tensor)].letter] += size_of_momentum(tensor);
      ++members[seats_[number(tensor)].letter];
    }
    for (const OneBitTensor& tensor : tensors_) {
      const std::size_t i = number(tensor), letter = seats_[i].letter;
      const double size = size_of_momentum(tensor), mean = sizes[letter] / members[letter];
      trust_[i].scale = size > 0 ? float(mean / size) : 1;
    }
  }
  double size_of_momentum(const OneBitTensor& tensor) const {
    const Parameter& p = *tensor.slot->parameter;
    const Shape& whole = p.pieces.empty() ? p.shape : p.pieces.front().where.global;
    return norms_(number(tensor), weight) / std::sqrt(double(whole.elements()));
  }

  void go_on(const UpdateArgs& args) {
    lengths_.resize(trust_.size());
    if (std::ranges::any_of(tensors_, [&](const auto& t) { return trust_[number(t)].scale == 0; }))
      begin_to_travel(args);
    each_run(weights_, args, [&](const UpdateRun& run) {
      const double grad_scale = args.grad_scale * run.block.readers.ranks();
      norms_.each_tensor(run.number, run.own, [&](const TensorRun& part) { send(run, part, grad_scale); });
    });
    mail_.reduce(together_);
    norms_.clear();
    each_run(weights_, args, [&](const UpdateRun& run) { learn(run); });
    find_growth();
    norms_.sum_over_ranks();
    each_run(weights_, args, [&](const UpdateRun& run) {
      norms_.each_tensor(run.number, run.own, [&](const TensorRun& part) { lengthen(run, part); });
      descend(run);
    });
  }

  void send(const UpdateRun& run, const TensorRun& part, double grad_scale) const {
    const Tensor travels = among_others(part.tensor, part.count);
    const double scale = double(trust_[part.tensor].scale);
    ops::copy_into(travels, momentum(run).slice(0, part.from, part.count));
    ops::scale_in_place(travels, float(config_.beta1 * scale));
    ops::add_scaled_into(travels, run.grads.slice(0, part.from, part.count),
                         float((1 - config_.beta1) * grad_scale * scale));
  }

  // The gradient that would have made this momentum of the last one teaches second moments that are only
  // compared.
  void learn(const UpdateRun& run) {
    const Tensor m = momentum(run), v = variance(run), fresh_v = fresh(run);
    find_alive(run.grads, run.master, v);
    norms_.each_tensor(run.number, run.own, [&](const TensorRun& part) {
      const Tensor came = among_others(part.tensor, part.count);
      const Tensor last = m.slice(0, part.from, part.count), g = run.grads.slice(0, part.from, part.count);
      ops::scale_in_place(came, 1 / trust_[part.tensor].scale);
      ops::multiply_into(came, came, g);
      ops::copy_into(g, came);
      ops::add_scaled_into(g, last, float(-config_.beta1));
      ops::copy_into(last, came);
    });
    ops::multiply_into(run.grads, run.grads, run.grads);
    ops::scale_in_place(fresh_v, float(config_.beta2));
    const double share = (1 - config_.beta2) / ((1 - config_.beta1) * (1 - config_.beta1));
    ops::add_scaled_into(fresh_v, run.grads, float(share));
    compare(run);
    direction_into_grads(run, m, v, config_.epsilon, 0);
    norms_.add(weight, run.number, run.own, run.grads);
    if (run.decay > 0) ops::add_scaled_into(run.grads, run.master, float(run.decay));
    norms_.add(direction, run.number, run.own, run.grads);
  }

  // The greatest (sqrt(v) + epsilon) / (sqrt(fresh v) + epsilon) of each tensor.
  void compare(const UpdateRun& run) const {
    ops::root_into(run.grads, variance(run), float(config_.epsilon));
    direction_into_grads(run, run.grads, fresh(run), config_.epsilon, 0);
    norms_.each_tensor(run.number, run.own, [&](const TensorRun& part) {
      ops::copy_into(greatest_.slice(0, std::int64_t(part.tensor), 1),
                     ops::max_abs(run.grads.slice(0, part.from, part.count)));
    });
  }
  void find_growth() {
    if (const ProcessMesh* mesh = weights_.data().mesh) {
      const auto dense = std::int64_t(norms_.tensors(View::dense));
      const auto over = [&](View view, const Tensor& of) {
        if (of.elements() == 0) return;
        mesh->along(model_axes(view) - Axis::pp).all_reduce(of, Reduce::max).wait();
      };
      over(View::dense, greatest_.slice(0, 0, dense));
      over(View::experts, greatest_.slice(0, dense, greatest_.elements() - dense));
    }
    read(greatest_, std::span<double>(growth_));
  }

  void lengthen(const UpdateRun& run, const TensorRun& part) {
    const OneBitConfig& how = config_.onebit;
    Trust& trust = trust_[part.tensor];
    double factor = growth_[part.tensor];
    if (run.decay > 0) {
      const double pure = norms_(part.tensor, weight), all = norms_(part.tensor, direction);
      const double share = all > 0 ? std::min(1.0, pure / all) : 1;
      factor = factor * share + 1 - share;
    }
    factor = std::clamp(factor, how.least_factor, how.most_factor);
    const double last = double(trust.factor);
    factor = std::clamp(factor, last * (1 - how.factor_step), last * (1 + how.factor_step));
    trust.factor = float(factor);
    lengths_[part.tensor] = float(double(trust.ratio) * factor);
  }

  Tensor momentum(const UpdateRun& run) const { return m_.of(run.number, run.own); }
  Tensor variance(const UpdateRun& run) const { return v_.of(run.number, run.own); }
  Tensor fresh(const UpdateRun& run) const { return fresh_.of(run.number, run.own); }

  Weights& weights_;
  OptimizerConfig config_;
  State m_, v_, fresh_;
  TensorNorms norms_;
  std::vector<OneBitTensor> tensors_;  // by number
  std::vector<Seat> seats_;            // by number
  std::vector<OneBitLetter> letters_;
  OneBitMail mail_;
  std::vector<Tensor> together_;  // of each letter: momenta that travel, one behind the other
  Tensor table_;                  // f32 [tensors, numbers_of_trust]
  std::vector<Trust> trust_;      // the same, while a step goes on
  Tensor greatest_;               // f64 [tensors]
  std::vector<double> growth_;    // the same
  std::vector<float> lengths_;    // of a step, of each tensor
};

}  // namespace

OptimizerRule onebit_lamb_rule() {
  return {.kind = OptimizerKind::onebitlamb,
          .state_bytes =
              [](const OptimizerConfig&) { return 16.0; },  // with errors, of several ranks, 20 or more
          .make = [](Weights& weights, const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
            return std::make_unique<OneBitLamb>(weights, config);
          }};
}

}  // namespace weft
