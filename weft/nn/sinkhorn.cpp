// Sums over all tokens decide each one's choice, so it is made once for whole sequences, in double.
#include "weft/nn/sinkhorn.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "weft/ops/activation.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/permute.h"
#include "weft/ops/softmax.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

constexpr double least_sum = 1e-8, close_enough = 1e-4;
constexpr int most_rounds = 10'000;  // where exponentials are zero it may never end

}  // namespace

void balance_by_sinkhorn(std::span<double> logits, std::size_t experts) {
  const std::size_t tokens = logits.size() / experts;
  std::vector<double> rows(tokens, 1), columns(experts, 1), sums(experts);
  for (double& x : logits) x = std::exp(x);
  double change = 1;
  for (int round = 0; round < most_rounds && change > close_enough; ++round) {
    std::ranges::fill(sums, 0);
    for (std::size_t i = 0; i < tokens; ++i) {
      const double* cost = &logits[i * experts];
      const double sum = std::inner_product(columns.begin(), columns.end(), cost, 0.0);
      rows[i] = 1 / (double(tokens) * (sum + least_sum));
      for (std::size_t e = 0; e < experts; ++e) sums[e] += rows[i] * cost[e];
    }
    change = 0;
    for (std::size_t e = 0; e < experts; ++e) {
      const double now = 1 / (double(experts) * (sums[e] + least_sum));
      change += std::abs(columns[e] - now) / double(experts);
      columns[e] = now;
    }
  }
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] *= rows[i / experts] * columns[i % experts];
}

Tensor shared_out(const Tensor& logits, std::int64_t k) {
  Device& device = logits.device();
  const Tensor shares = empty(device, logits.shape());
  if (device.holds_numbers()) {
    std::vector<double> all = numbers(logits);
    balance_by_sinkhorn(all, std::size_t(logits.dim(1)));
    copy_to<float>(shares, std::vector<float>(all.begin(), all.end()));
  }
  return ops::top_k(shares, k).indices;
}

Tensor weights_at(const Tensor& logits, const Tensor& experts, RouterScore score) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1), k = experts.dim(1);
  const Tensor scores =
      score == RouterScore::softmax ? ops::softmax(logits) : ops::activation(logits, {}, Activation::sigmoid);
  std::vector<std::int32_t> places(std::size_t(t * k));
  if (logits.device().holds_numbers()) {
    places = to_host<std::int32_t>(experts);
    for (std::int64_t i = 0; i < t * k; ++i) places[std::size_t(i)] += std::int32_t(i / k * e);
  }
  const Tensor at = from_host(logits.device(), {t * k}, places);
  return ops::gather_rows(scores.view({t * e, 1}), at).view({t, k});
}

}  // namespace weft
