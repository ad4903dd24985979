// Cross entropy over rows of logits; the formulas stand in reference/loss.cpp.
#include <cmath>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;

namespace {

bool whole(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors)
    if (*tensor && !tensor->contiguous()) return false;
  return true;
}

/// The column of a target, -1 where another part has it.
std::int64_t column_of(std::int32_t target, VocabularyPart part) {
  const std::int64_t column = target - part.first;
  return column >= 0 && column < part.count ? column : -1;
}

float number_at(const Lines& rows, std::int64_t row, std::int64_t column, const fast::Loops& loops) {
  float x = 0;
  const fast::In in = rows.in(row);
  const std::int64_t size = size_of(in.type);
  loops.elementwise.copy({&x, fast::Type::f32, false}, {rows.at(row) + column * size, in.type}, 1);
  return x;
}

/// What a row's gradient is made of.
struct Slopes {
  Slopes(const LossParts& parts, const LossTargets& targets, VocabularyPart vocabulary)
      : max(parts.max.data<float>()),
        sum(parts.sum.data<float>()),
        weight(targets.weight.data<float>()),
        wanted(targets.ids.data<std::int32_t>()),
        part(vocabulary) {}

  fast::LossRow row(std::int64_t t) const {
    return {max[t], float(double(weight[t]) / double(sum[t])), -weight[t], column_of(wanted[t], part)};
  }

  const float* max;
  const float* sum;
  const float* weight;
  const std::int32_t* wanted;
  VocabularyPart part;
};

}  // namespace

void FastKernels::loss_max(const LossParts& parts, const Tensor& logits, VocabularyPart part) {
  if (!ready({&logits}) || !whole({&parts.max})) return ReferenceKernels::loss_max(parts, logits, part);
  const Lines rows(logits);
  auto* max = parts.max.data<float>();
  in_parallel(threads_, rows.count(), rows.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) max[t] = loops_.softmax.greatest(rows.in(t), part.count);
  });
}

void FastKernels::loss_sums(const LossParts& parts, const Tensor& logits, const Tensor& targets,
                            VocabularyPart part) {
  if (!ready({&logits}) || !whole({&parts.max, &parts.sum, &parts.target, &targets}))
    return ReferenceKernels::loss_sums(parts, logits, targets, part);
  const Lines rows(logits);
  const auto* max = parts.max.data<float>();
  const auto* wanted = targets.data<std::int32_t>();
  auto* sum = parts.sum.data<float>();
  auto* target = parts.target.data<float>();
  in_parallel(threads_, rows.count(), rows.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t column = column_of(wanted[t], part);
      sum[t] = float(loops_.softmax.sum(rows.in(t), max[t], part.count));
      target[t] = column < 0 ? 0 : number_at(rows, t, column, loops_) - max[t];
    }
  });
}

void FastKernels::loss_finish(const Tensor& loss, const LossParts& parts) {
  if (!whole({&loss, &parts.sum, &parts.target})) return ReferenceKernels::loss_finish(loss, parts);
  const auto* sum = parts.sum.data<float>();
  const auto* target = parts.target.data<float>();
  auto* to = loss.data<float>();
  for (std::int64_t t = 0; t < loss.elements(); ++t)
    to[t] = float(std::log(double(sum[t])) - double(target[t]));
}

void FastKernels::loss_backward(const Tensor& logits, const LossParts& parts, const LossTargets& targets,
                                VocabularyPart part) {
  if (!ready({&logits}) || !whole({&parts.max, &parts.sum, &targets.ids, &targets.weight}))
    return ReferenceKernels::loss_backward(logits, parts, targets, part);
  const Lines rows(logits);
  const Slopes slopes(parts, targets, part);
  const std::int64_t size = size_of(logits.dtype());
  in_parallel(threads_, rows.count(), rows.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const fast::Out row = rows.out(t);
      loops_.loss.backward(row, slopes.row(t), part.count);
      loops_.elementwise.fill({static_cast<std::byte*>(row.to) + part.count * size, row.type, false}, 0,
                              rows.width() - part.count);
    }
  });
}

}  // namespace weft
