// One of several workers that read other samples and train a few tensors by a rule that speaks in one bit.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/optim/originals.h"
#include "tests/support/numbers.h"
#include "weft/backend/open.h"
#include "weft/comm/threads.h"
#include "weft/optim/rules.h"
#include "weft/tensor/host.h"

namespace weft::testing {

/// One of the first dimension's.
inline std::vector<float> part(const std::vector<float>& all, std::int64_t which, std::int64_t of) {
  const auto each = std::int64_t(all.size()) / of;
  return {all.begin() + which * each, all.begin() + (which + 1) * each};
}

class Worker {
 public:
  struct One {
    std::string name;
    Shape shape;
    bool decays = true;
  };
  Worker(const OptimizerConfig& config, const std::vector<One>& tensors, Communicator& world)
      : mesh_(ParallelLayout({.dp = world.size()}), world) {
    for (const One& one : tensors) {
      parameters_.push_back(std::make_unique<Parameter>(whole_parameter(one.name, one.shape, {})));
      parameters_.back()->decays = one.decays;
    }
    weights_.emplace(
        [this](const VisitParameter& visit) {
          for (const auto& parameter : parameters_) visit(*parameter);
        },
        *device_, Dtype::f32, Weights::For::training, DataParallel{.mesh = &mesh_});
    rule_ = make_optimizer(*weights_, config);
  }
  void begin(const std::string& name, const std::vector<float>& values) {
    copy_to<float>(at(name).value, values);
  }
  /// A gradient is a term of a sum here, of a mean there.
  void learn(const std::string& name, const std::vector<float>& gradient) {
    const Tensor sum = at(name).grad.sum();
    copy_to<float>(sum, gradient);
    if (rule_->wants_sums()) circle().all_reduce(sum, Reduce::sum).wait();
  }
  void step(double rate, double decay) {
    rule_->update(
        {.rate = rate, .ends_rate = rate, .decay = decay, .grad_scale = 1.0 / double(circle().size())});
  }
  /// None where this step has none.
  std::vector<double> state(const std::string& name) const {
    std::vector<double> out;
    rule_->each_state([&](const Held& held) {
      if (held.name == name && held.pieces.size() == 1)
        out = numbers(held.memory.view({held.memory.elements()})
                          .slice(0, held.pieces[0].at, held.pieces[0].where.local.elements()));
    });
    return out;
  }
  std::vector<double> weight(const std::string& name) const { return numbers(at(name).value); }
  Optimizer& rule() { return *rule_; }
  /// Whether all ranks hold the bits of the first.
  bool all_agree(const std::string& name) const {
    const std::vector<double> mine = weight(name);
    const Tensor first = from_host(*device_, {std::int64_t(mine.size())}, mine);
    circle().broadcast(first, 0).wait();
    return numbers(first) == mine;
  }

 private:
  Communicator& circle() const { return mesh_.along({Axis::dp, Axis::cp}); }
  Parameter& at(const std::string& name) const {
    return **std::ranges::find_if(parameters_, [&](const auto& p) { return p->name == name; });
  }
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  ProcessMesh mesh_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::optional<Weights> weights_;
  std::unique_ptr<Optimizer> rule_;
};

/// The gradient of a step, as one worker has it.
inline std::vector<float> gradient_of(const Originals& set, const std::string& name, int step, int worker) {
  return part(part(set["grad/" + name], step - 1, 40), worker, set.shape("grad/" + name)[1]);
}
inline double rate_of(const nlohmann::json& how, int step) {
  return how["lr_varies"] ? how["lrs"][std::size_t(step - 1)] : how["lr"];
}
inline bool saved_at(const nlohmann::json& how, int step) {
  const nlohmann::json& at = how["steps_saved"];
  return std::find(at.begin(), at.end(), step) != at.end();
}

}  // namespace weft::testing
