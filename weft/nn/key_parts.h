// Query heads of a key group in equal parts, for sums over them that must not show who holds them.
//
// In exact mode what queries say of their key and value is a balanced tree in f32, whose leaves are parts of
// the group's heads: as many as ranks may ever share it. A rank that holds one of four parts adds with its
// neighbours what a rank that holds all four adds by itself, and each of them has the whole gradient.
#pragma once

#include "weft/nn/context_attention.h"

namespace weft {

struct KeyParts {
  std::int64_t here = 1;            // of the queries of each key head held here
  Communicator* sharers = nullptr;  // with other parts of them, in order; none: all parts are here

  /// What context_attention does, and its derivative.
  ContextKept attention(const ContextParallel& context, const Attended& in, const AttentionArgs& how) const;
  void attention_backward_into(const ContextParallel& context, const AttentionGrads& grads,
                               const Tensor& dout, const ContextKept& kept, const AttentionArgs& how) const;
};

}  // namespace weft
