// Sinkhorn's iteration against megatron-core 0.16.1's, whose numbers these are, and what routers make of it.
#include "weft/nn/sinkhorn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/tiny.h"
#include "weft/ops/permute.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::vector<float> logits{-0.125F, 0.5F,   -1.125F, 0.125F, 1.0F,  -0.375F, 2.375F,  -2.375F,
                                0.625F,  0.875F, 1.125F,  0.0F,   -0.5F, 0.75F,   -0.125F, -2.75F,
                                0.75F,   0.25F,  0.5F,    2.0F,   0.5F,  0.0F,    1.125F,  -0.125F};
constexpr std::size_t experts = 4;

}  // namespace

TEST(Sinkhorn, shares_as_megatron_does) {
  std::vector<double> shares(logits.begin(), logits.end());
  balance_by_sinkhorn(shares, experts);
  const std::vector<double> expected{
      0.03918942, 0.05749781, 0.007903199, 0.0620805,  0.04888926, 0.009707492, 0.1059978,  0.00206387,
      0.04665184, 0.04704254, 0.04216426,  0.03080686, 0.03569825, 0.09785059,  0.02847317, 0.004641913,
      0.0268429,  0.01278588, 0.01145999,  0.1155873,  0.0527283,  0.02511568,  0.05400157, 0.03481949};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(shares[i], expected[i], 2e-6) << i;
}

// An expert that everybody likes best is not everybody's.
TEST(Sinkhorn, chooses_by_shares_and_weighs_by_scores_over_all_experts) {
  const auto device = open_device("cpu", {.threads = 1});
  const Tensor scored = from_host(*device, {6, experts}, logits);
  const Tensor chosen = shared_out(scored, 2);
  EXPECT_EQ(numbers(chosen), (std::vector<double>{3, 1, 2, 0, 1, 0, 1, 0, 3, 0, 2, 0}));
  EXPECT_NE(numbers(ops::top_k(scored, 2).indices), numbers(chosen));
  double sum = 0;
  for (std::size_t e = 0; e < experts; ++e) sum += std::exp(double(logits[e]));
  EXPECT_NEAR(numbers(weights_at(scored, chosen, RouterScore::softmax))[0], std::exp(0.125) / sum, 1e-6);
  EXPECT_NEAR(numbers(weights_at(scored, chosen, RouterScore::sigmoid))[1], 1 / (1 + std::exp(-0.5)), 1e-6);
}

TEST(Sinkhorn, ends_where_nothing_can_be_shared_out) {
  std::vector<double> shares(4, std::nan(""));
  balance_by_sinkhorn(shares, 2);
  EXPECT_TRUE(std::isnan(shares[0]));
  shares = {-2000, 0, -2000, 0};  // nobody wants the first
  balance_by_sinkhorn(shares, 2);
  EXPECT_EQ(shares[0], 0);
}
