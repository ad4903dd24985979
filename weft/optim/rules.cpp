// A rule's line stands here; the rest of it in rules/.
#include "weft/optim/rules.h"

#include "weft/base/error.h"

namespace weft {

OptimizerRule rule_of(OptimizerKind kind) {
  for (const OptimizerRule& rule : {adam_rule(), sgd_rule(), lion_rule(), lamb_rule(), muon_rule(),
                                    onebit_adam_rule(), zero_one_adam_rule(), onebit_lamb_rule()})
    if (rule.kind == kind) return rule;
  fail(Kind::usage, "{optimizer.kind=", words(kind)[std::size_t(kind)], "}: weft has no such optimizer yet");
}

std::unique_ptr<Optimizer> make_optimizer(Weights& weights, const OptimizerConfig& config) {
  return rule_of(config.kind).make(weights, config);
}

}  // namespace weft
