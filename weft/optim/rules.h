// The update rules that weft has.
#pragma once

#include <memory>

#include "weft/optim/config.h"
#include "weft/optim/optimizer.h"

namespace weft {

/// A rule is a value: what it is called, what it keeps, and how it is made. One folder of optim/rules and one
/// line in rules.cpp each; nothing else names one.
struct OptimizerRule {
  OptimizerKind kind;
  /// Bytes that it keeps of every weight, beside the master.
  double (*state_bytes)(const OptimizerConfig&);
  std::unique_ptr<Optimizer> (*make)(Weights&, const OptimizerConfig&);
};

OptimizerRule adam_rule();
OptimizerRule sgd_rule();
OptimizerRule lion_rule();
OptimizerRule lamb_rule();
OptimizerRule muon_rule();
OptimizerRule onebit_adam_rule();
OptimizerRule zero_one_adam_rule();
OptimizerRule onebit_lamb_rule();

/// Fails with Kind::usage where nobody has written it.
OptimizerRule rule_of(OptimizerKind kind);
std::unique_ptr<Optimizer> make_optimizer(Weights& weights, const OptimizerConfig& config);

}  // namespace weft
