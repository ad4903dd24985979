// A single weight under an optimizer: what goes in and what comes out, step by step.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/backend/open.h"
#include "weft/optim/rules.h"
#include "weft/tensor/host.h"

namespace weft::testing {

class OneTensor {
 public:
  OneTensor(const Shape& shape, const std::vector<float>& begin, const OptimizerConfig& config,
            const std::string& device = "cpu")
      : device_(open_device(device, {.threads = 1})),
        parameter_(whole_parameter("w", shape, {})),
        weights_([this](const VisitParameter& visit) { visit(decaying(parameter_)); }, *device_, Dtype::f32,
                 Weights::For::training),
        rule_(make_optimizer(weights_, config)) {
    copy_to<float>(parameter_.value, begin);
  }
  void step(const std::vector<float>& gradient, const UpdateArgs& args) {
    copy_to<float>(parameter_.grad.sum(), gradient);
    rule_->update(args);
  }
  std::vector<double> weight() const { return numbers(parameter_.value); }
  /// ".m" and the like.
  std::vector<double> state(const std::string& suffix) const {
    std::vector<double> out;
    rule_->each_state([&](const Held& held) {
      if (held.name == "w" + suffix) out = numbers(held.memory.slice(0, 0, parameter_.shape.elements()));
    });
    return out;
  }

 private:
  static Parameter& decaying(Parameter& parameter) {
    parameter.decays = true;
    return parameter;
  }
  std::unique_ptr<Device> device_;
  Parameter parameter_;
  Weights weights_;
  std::unique_ptr<Optimizer> rule_;
};

}  // namespace weft::testing
