// Doors of the loss. Kernels see logits [t, columns] and everything else [t].
#include "weft/ops/loss.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

std::int64_t check_logits(const Door& door, const Tensor& logits, VocabularyPart part) {
  door.floats("logits", logits).ranked("logits", logits, 2, Dims::max_rank).dense_rows("logits", logits);
  if (part.count < 0 || part.count > logits.dim(-1))
    door.refuse(Kind::shape, "logits have ", logits.dim(-1), " columns for ", part.count, " words");
  if (part.first < 0 || part.count > part.whole - part.first)
    door.refuse(Kind::shape, "words ", part.first, " to ", part.first + part.count, " are not among ",
                part.whole);
  return logits.dim(-1) == 0 ? 0 : logits.elements() / logits.dim(-1);
}

void check_token(const Door& door, const char* what, const Tensor& tensor, Dtype dtype, std::int64_t t) {
  door.typed(what, tensor, dtype).contiguous(what, tensor);
  if (tensor.elements() != t)
    door.refuse(Kind::shape, what, " ", tensor.shape(), " has ", tensor.elements(), " elements for ", t,
                " tokens");
}

void check_parts(const Door& door, const LossParts& parts, std::int64_t t) {
  check_token(door, "max", parts.max, Dtype::f32, t);
  check_token(door, "sum", parts.sum, Dtype::f32, t);
  check_token(door, "target", parts.target, Dtype::f32, t);
}

Tensor flat(const Tensor& tensor) { return tensor.view({tensor.elements()}); }

LossParts flat(const LossParts& parts) { return {flat(parts.max), flat(parts.sum), flat(parts.target)}; }

}  // namespace

Tensor loss_max(const Tensor& logits, VocabularyPart part) {
  const Door door("loss_max", logits);
  const std::int64_t t = check_logits(door, logits, part);
  LossParts parts;
  parts.max = empty(logits.device(), {t});
  count::pass(logits, Work::loss, 1, count::traffic(logits, parts.max));
  logits.device().kernels().loss_max(parts, logits.rows(), part);
  return parts.max;
}

LossSums loss_sums(const Tensor& max, const Tensor& logits, const Tensor& targets, VocabularyPart part) {
  const Door door("loss_sums", logits);
  const std::int64_t t = check_logits(door, logits, part);
  check_token(door, "max", max, Dtype::f32, t);
  check_token(door, "targets", targets, Dtype::i32, t);
  LossSums out;
  out.all = empty(logits.device(), {2, t});
  out.parts = {flat(max), out.all.at(0, 0), out.all.at(0, 1)};
  count::pass(logits, Work::loss, count::loss, count::traffic(logits, max, targets, out.all));
  logits.device().kernels().loss_sums(out.parts, logits.rows(), flat(targets), part);
  return out;
}

Tensor loss_finish(const LossParts& parts) {
  const Door door("loss_finish", parts.max);
  check_parts(door, parts, parts.max.elements());
  Tensor loss = empty(parts.max.device(), {parts.max.elements()});
  count::pass(loss, Work::loss, count::loss, count::traffic(loss, parts.max, parts.sum, parts.target));
  loss.device().kernels().loss_finish(loss, flat(parts));
  return loss;
}

void loss_backward_in_place(const Tensor& logits, const LossParts& parts, const LossTargets& targets,
                            VocabularyPart part) {
  const Door door("loss_backward", logits);
  const std::int64_t t = check_logits(door, logits, part);
  check_parts(door, parts, t);
  check_token(door, "targets", targets.ids, Dtype::i32, t);
  check_token(door, "weight", targets.weight, Dtype::f32, t);
  count::pass(logits, Work::loss, count::loss,
              count::traffic(logits, logits, parts.max, parts.sum, targets.ids, targets.weight));
  const LossTargets flattened{flat(targets.ids), flat(targets.weight)};
  logits.device().kernels().loss_backward(logits.rows(), flat(parts), flattened, part);
}

bool loses_in_one_walk(const Tensor& logits) {
  return logits.device().kernels().loses_in_one_walk(logits.rows());
}

Tensor loss_and_gradient_in_place(const Tensor& logits, const LossTargets& targets, VocabularyPart part) {
  const Door door("loss_and_gradient", logits);
  const std::int64_t t = check_logits(door, logits, part);
  if (part.first != 0 || part.count != part.whole)
    door.refuse(Kind::shape, "words ", part.first, " to ", part.first + part.count, " are not all of ",
                part.whole);
  check_token(door, "targets", targets.ids, Dtype::i32, t);
  check_token(door, "weight", targets.weight, Dtype::f32, t);
  Tensor loss = empty(logits.device(), {t});
  count::pass(logits, Work::loss, 2 * count::loss + 1,
              count::traffic(logits, logits, targets.ids, targets.weight, loss));
  logits.device().kernels().loss_and_gradient(loss, logits.rows(), {flat(targets.ids), flat(targets.weight)},
                                              part);
  return loss;
}

}  // namespace weft::ops
