// Cross entropy in pieces, so that a vocabulary can be cut over ranks:
//
//   max = loss_max(...)                                  all-reduce max (greatest) over the parts
//   sums = loss_sums(max, ...)                           all-reduce sums.all (sum) over the parts
//   loss = loss_finish(sums.parts)
//   loss_backward_in_place(logits, sums.parts, ...)      logits become their own gradient
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

struct LossSums {
  LossParts parts;
  Tensor all;  // f32 [2, t]: sum and target, one block for one all-reduce
};

/// logits [.., columns] -> f32 [..]: the greatest of the real words' logits
Tensor loss_max(const Tensor& logits, VocabularyPart part);
/// max is the greatest over all parts; targets i32 [..], ids of the whole vocabulary.
LossSums loss_sums(const Tensor& max, const Tensor& logits, const Tensor& targets, VocabularyPart part);
/// parts of the whole vocabulary -> f32 [t], the loss of every token
Tensor loss_finish(const LossParts& parts);
/// logits [.., columns] become d(sum of weight * loss) / d logits, zero in padded columns.
void loss_backward_in_place(const Tensor& logits, const LossParts& parts, const LossTargets& targets,
                            VocabularyPart part);

/// Whether the next is one walk over such logits.
bool loses_in_one_walk(const Tensor& logits);
/// All of it where the whole vocabulary is here: f32 [t], the loss of every token, and logits become the
/// gradient.
Tensor loss_and_gradient_in_place(const Tensor& logits, const LossTargets& targets, VocabularyPart part);

}  // namespace weft::ops
