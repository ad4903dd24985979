// Attention over sequences that are cut over a circle of ranks.
//
// A sequence lies in 2c chunks; rank i holds chunks i and 2c-1-i, one behind the other, so that all have as
// much causal attention to do (data/context_split.h cuts the same way).
#pragma once

#include <memory>

#include "weft/comm/communicator.h"
#include "weft/nn/context_form.h"
#include "weft/nn/sum_rules.h"
#include "weft/tensor/args.h"

namespace weft {

struct ContextParallel {
  Communicator* circle = nullptr;  // none: every rank holds whole sequences
  ContextForm form = ContextForm::ring;
  SumRules sums = {};
  // Two levels only: neighbours in the circle, and those who stand at the same place among theirs.
  Communicator* inner = nullptr;
  Communicator* outer = nullptr;
  bool cut() const { return circle && circle->size() > 1; }
};

/// The circles of two levels: the chunks of `inner` neighbours make two chunks of a sequence cut over fewer
/// ranks.
struct ContextLevels {
  std::unique_ptr<Communicator> inner, outer;
};
/// Collective over the circle, whose ranks are a multiple of `inner`.
ContextLevels context_levels(Communicator& circle, int inner);

/// What backward needs again.
struct ContextKept {
  Attended in;         // windows on what the caller keeps anyway
  AttentionOut out;    // of the steps held here
  Attended whole;      // heads only: this rank's heads of whole sequences,
  AttentionOut inner;  // and what came of them
};

/// in: the steps held here, as ops::attention takes them; so are the segments in how.
ContextKept context_attention(const ContextParallel& context, const Attended& in, const AttentionArgs& how);
void context_attention_backward_into(const ContextParallel& context, const AttentionGrads& grads,
                                     const Tensor& dout, const ContextKept& kept, const AttentionArgs& how);

}  // namespace weft
