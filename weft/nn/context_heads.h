// Heads for steps: each rank of a context-parallel circle gets whole sequences of its share of the heads.
#pragma once

#include "weft/nn/context_attention.h"

namespace weft {

/// Who trades, and how attention goes on over those who hold other parts of what came together.
struct HeadTrade {
  Communicator& circle;
  ContextParallel beyond;  // not cut: whole sequences came together
};

/// The key heads held here must be a multiple of the circle's ranks.
ContextKept heads_attention(const HeadTrade& how_traded, const Attended& in, const AttentionArgs& how);
void heads_attention_backward_into(const HeadTrade& how_traded, const AttentionGrads& grads,
                                   const Tensor& dout, const ContextKept& kept, const AttentionArgs& how);

/// Memory for gradients of these heads, of the types of those.
AttentionGrads grads_like(const Attended& heads, const AttentionGrads& types);

}  // namespace weft
