// Cross entropy in pieces. s = sum of exp(logit - max):
//   loss = log s - (target - max) + z (max + log s)^2
//   dlogit = p (1 + 2 z (max + log s)) - [target],  p = exp(logit - max) / s
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;

/// The column of a target, -1 where another part has it.
std::int64_t column_of(std::int32_t target, VocabularyPart part) {
  const std::int64_t column = target - part.first;
  return column >= 0 && column < part.count ? column : -1;
}

}  // namespace

void ReferenceKernels::loss_max(const LossParts& parts, const Tensor& logits, VocabularyPart part) {
  called();
  const LoadedRows rows(logits);
  std::vector<double> greatest;
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    const std::vector<double> row = rows.load(i);
    double max = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < part.count; ++j) max = std::max(max, row[std::size_t(j)]);
    greatest.push_back(max);
  }
  reference::store(parts.max, greatest);
}

void ReferenceKernels::loss_sums(const LossParts& parts, const Tensor& logits, const Tensor& targets,
                                 VocabularyPart part) {
  called();
  const LoadedRows rows(logits);
  const std::vector<double> max = reference::load(parts.max);
  const std::span<const std::int32_t> wanted = targets.as<std::int32_t>();
  std::vector<double> sums(max.size());
  std::vector<double> found(max.size());
  for (std::size_t t = 0; t < max.size(); ++t) {
    const std::vector<double> row = rows.load(std::int64_t(t));
    for (std::size_t j = 0; j < std::size_t(part.count); ++j) sums[t] += std::exp(row[j] - max[t]);
    const std::int64_t column = column_of(wanted[t], part);
    found[t] = column < 0 ? 0 : row[std::size_t(column)] - max[t];
  }
  reference::store(parts.sum, sums);
  reference::store(parts.target, found);
}

void ReferenceKernels::loss_finish(const Tensor& loss, const LossParts& parts) {
  called();
  const std::vector<double> sum = reference::load(parts.sum);
  const std::vector<double> target = reference::load(parts.target);
  std::vector<double> out;
  for (std::size_t t = 0; t < sum.size(); ++t) out.push_back(std::log(sum[t]) - target[t]);
  reference::store(loss, out);
}

void ReferenceKernels::loss_backward(const Tensor& logits, const LossParts& parts, const LossTargets& targets,
                                     VocabularyPart part) {
  called();
  const LoadedRows rows(logits);
  const std::vector<double> max = reference::load(parts.max);
  const std::vector<double> sum = reference::load(parts.sum);
  const std::vector<double> weight = reference::load(targets.weight);
  const std::span<const std::int32_t> wanted = targets.ids.as<std::int32_t>();
  for (std::size_t t = 0; t < max.size(); ++t) {
    std::vector<double> row = rows.load(std::int64_t(t));
    const std::int64_t column = column_of(wanted[t], part);
    for (std::int64_t j = 0; j < rows.width(); ++j) {
      double& element = row[std::size_t(j)];
      const double p = std::exp(element - max[t]) / sum[t];
      element = j < part.count ? weight[t] * (p - (j == column ? 1 : 0)) : 0;
    }
    rows.store(std::int64_t(t), row);
  }
}

}  // namespace weft
