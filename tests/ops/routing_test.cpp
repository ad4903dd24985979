// Choosing experts, written out a second time: from whole rows of scores, as the papers say it.
#include "weft/ops/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/ops/fixture.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/permute.h"

namespace weft {
namespace {

using Routing = Ops;
using Numbers = std::vector<double>;

constexpr std::int64_t tokens = 12, experts = 8;

Numbers row_of(const Tensor& x, std::int64_t row) {
  const Numbers all = numbers(x);
  const auto first = all.begin() + std::ptrdiff_t(row * x.dim(1));
  return {first, first + std::ptrdiff_t(x.dim(1))};
}

double score(double x, RouterScore kind) {
  if (kind == RouterScore::sigmoid) return 1 / (1 + std::exp(-x));
  return std::sqrt(std::log(1 + std::exp(x)));
}

Numbers softmax(const Numbers& x) {
  Numbers out;
  double sum = 0;
  for (const double one : x) sum += std::exp(one);
  for (const double one : x) out.push_back(std::exp(one) / sum);
  return out;
}

/// Places by descending value, the first k.
std::vector<int> best(const Numbers& x, int k) {
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return x[std::size_t(a)] > x[std::size_t(b)]; });
  order.resize(std::size_t(k));
  return order;
}

struct Case {
  RouteArgs how;
  int k = 2;
  bool biased = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{}, 2},
      {{.scaling = 2.5F}, 3},
      {{.softmax_first = true}, 1},
      {{.softmax_first = true, .scaling = 0.5F}, 4},
      {{.groups = 4, .groups_kept = 2}, 2},
      {{.score = RouterScore::sigmoid}, 1},
      {{.score = RouterScore::sigmoid}, 3, true},
      {{.score = RouterScore::sigmoid, .groups = 2, .groups_kept = 1, .scaling = 2.5F}, 2, true},
      {{.score = RouterScore::sqrt_softplus}, 1},
      {{.score = RouterScore::sqrt_softplus, .groups = 4, .groups_kept = 2}, 4, true},
  };
  return all;
}

struct Chosen {
  std::vector<int> experts;
  Numbers weights;
};

Chosen chosen_of(const Numbers& logits, const Numbers& bias, const Case& c) {
  const bool softmaxed = c.how.score == RouterScore::softmax;
  Numbers scores = softmaxed && c.how.softmax_first ? softmax(logits) : logits;
  if (!softmaxed)
    for (double& x : scores) x = score(x, c.how.score);
  Numbers compared = scores;
  for (std::size_t i = 0; i < bias.size(); ++i) compared[i] += bias[i];
  if (c.how.groups > 0) {
    const int each = int(experts) / c.how.groups;
    Numbers groups;
    for (int g = 0; g < c.how.groups; ++g) {
      Numbers here(compared.begin() + g * each, compared.begin() + (g + 1) * each);
      std::ranges::sort(here, std::greater());
      groups.push_back(std::accumulate(here.begin(), here.begin() + c.k / c.how.groups_kept, 0.0));
    }
    const std::vector<int> kept = best(groups, c.how.groups_kept);
    for (int e = 0; e < int(experts); ++e)
      if (std::ranges::find(kept, e / each) == kept.end()) compared[std::size_t(e)] = -1e30;
  }
  Chosen out{best(compared, c.k), {}};
  for (const int e : out.experts) out.weights.push_back(scores[std::size_t(e)]);
  if (softmaxed && !c.how.softmax_first) out.weights = softmax(out.weights);
  const double sum = std::accumulate(out.weights.begin(), out.weights.end(), 0.0);
  for (double& w : out.weights) w *= double(c.how.scaling) / (!softmaxed && c.k > 1 ? sum : 1);
  return out;
}

TEST_F(Routing, chooses_and_weighs_experts_as_the_definition_says) {
  for (const Case& c : cases()) {
    const Tensor logits = random({tokens, experts}, Dtype::f32, 2);
    const Tensor bias = c.biased ? random({experts}, Dtype::f32, 0.3) : Tensor();
    const Routed routed = ops::route(logits, bias, c.k, c.how);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const Chosen expected = chosen_of(row_of(logits, t), bias ? numbers(bias) : Numbers(), c);
      EXPECT_EQ(row_of(routed.experts, t), Numbers(expected.experts.begin(), expected.experts.end()));
      EXPECT_EQ(difference(row_of(routed.weights, t), expected.weights, f32_near), "");
    }
  }
}

TEST_F(Routing, tells_doubles_apart_that_are_one_float) {
  const Tensor logits = holding({1, 3}, {1, 1 + 1e-12, 1 - 1e-12}, Dtype::f64);
  const Routed routed = ops::route(logits, {}, 2, {.softmax_first = true});
  EXPECT_EQ(numbers(routed.experts), (Numbers{1, 0}));
  EXPECT_EQ(numbers(ops::top_k(logits, 2).indices), (Numbers{1, 0}));
  EXPECT_EQ(numbers(ops::top_k(logits, 2).values), (Numbers{1 + 1e-12, 1}));
  EXPECT_EQ(numbers(ops::route(ops::cast(logits, Dtype::f32), {}, 2, {}).experts), (Numbers{0, 1}));
}

// Steps as small as a float's last bits: differences of terms are those of f32, so they are summed here.
TEST_F(Routing, has_gradients_of_doubles_for_doubles) {
  const Tensor logits = random({tokens, experts}, Dtype::f64, 2), narrow = ops::cast(logits, Dtype::f32);
  const Tensor factors = random({3, experts}), dweights = random({tokens, 2});
  const RouteArgs how{.score = RouterScore::sigmoid, .scaling = 2.5F};
  const auto gradient = [&](const Tensor& at) {
    const Tensor d = zeros({tokens, experts}, at.dtype());
    const Routed routed = ops::route(at, {}, 2, how);
    ops::route_backward_into(d, dweights, at, routed, how);
    (void)ops::balance(d, at, factors, how.score, 0.5F);
    (void)ops::square_log_sum(d, at, 0.25F);
    return numbers(d);
  };
  EXPECT_EQ(difference(gradient(logits), gradient(narrow), {1e-5, 1e-5}), "");
  EXPECT_EQ(difference(gradient(ops::cast(narrow, Dtype::f64)), gradient(narrow), {1e-6, 1e-6}), "");
}

TEST_F(Routing, gives_ties_to_the_lower_index) {
  const Routed routed = ops::route(holding({1, 4}, {1, 3, 3, 3}), {}, 2, {});
  EXPECT_EQ(numbers(routed.experts), (Numbers{1, 2}));
  EXPECT_EQ(numbers(routed.weights), (Numbers{0.5, 0.5}));
}

TEST_F(Routing, has_the_derivative_of_the_weights) {
  for (const Case& c : cases()) {
    const Tensor logits = random({tokens, experts}, Dtype::f32, 2);
    const Tensor bias = c.biased ? random({experts}, Dtype::f32, 0.3) : Tensor();
    const Tensor dweights = random({tokens, c.k});
    const Routed routed = ops::route(logits, bias, c.k, c.how);
    const Tensor dlogits = zeros({tokens, experts});
    ops::route_backward_into(dlogits, dweights, logits, routed, c.how);
    // A small step, so that no token changes its experts.
    const auto weights = [&] { return probed(dweights, ops::route(logits, bias, c.k, c.how).weights); };
    EXPECT_EQ(difference(numbers(dlogits), slopes(logits, weights, 0x1p-9), {5e-3, 2e-3}), "");
    ops::route_backward_into(dlogits, dweights, logits, routed, c.how);
    EXPECT_NE(difference(numbers(dlogits), slopes(logits, weights, 0x1p-9), {5e-3, 2e-3}), "")
        << "it is added";
  }
}

TEST_F(Routing, counts_experts_of_each_sample) {
  const Tensor chosen = integers({4, 2}, {0, 1, 0, 2, -1, 1, 2, -1});
  EXPECT_EQ(numbers(ops::count_experts(chosen, 2, 3)), (Numbers{1, 2, 0, 1, 0, 2}));
  EXPECT_EQ(numbers(ops::count_experts(chosen, 1, 3)), (Numbers{2, 2, 2}));
}

TEST_F(Routing, measures_balance_and_has_its_derivative) {
  for (const RouterScore kind : {RouterScore::softmax, RouterScore::sigmoid, RouterScore::sqrt_softplus}) {
    const Tensor logits = random({tokens, experts}, Dtype::f32, 2);
    const Tensor factors = random({3, experts});
    const Tensor dlogits = zeros({tokens, experts});
    const Tensor terms = ops::balance(dlogits, logits, factors, kind, 0.5F);
    for (std::int64_t t = 0; t < tokens; ++t) {
      Numbers scores = row_of(logits, t);
      if (kind == RouterScore::softmax) {
        scores = softmax(scores);
      } else {
        for (double& x : scores) x = score(x, kind);
        const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
        for (double& x : scores) x /= sum;
      }
      const Numbers factor = row_of(factors, t % 3);
      EXPECT_NEAR(numbers(terms)[std::size_t(t)],
                  std::inner_product(scores.begin(), scores.end(), factor.begin(), 0.0), 1e-6);
    }
    const Tensor half = holding({tokens}, Numbers(std::size_t(tokens), 0.5));
    const auto sum = [&] { return probed(half, ops::balance({}, logits, factors, kind, 0)); };
    EXPECT_EQ(difference(numbers(dlogits), slopes(logits, sum), slope_near), "");
  }
}

TEST_F(Routing, measures_the_logarithm_of_the_sum_and_has_its_derivative) {
  const Tensor logits = random({tokens, experts}, Dtype::f32, 2);
  const Tensor dlogits = zeros({tokens, experts});
  const Tensor terms = ops::square_log_sum(dlogits, logits, 0.5F);
  for (std::int64_t t = 0; t < tokens; ++t) {
    double sum = 0;
    for (const double x : row_of(logits, t)) sum += std::exp(x);
    EXPECT_NEAR(numbers(terms)[std::size_t(t)], std::log(sum) * std::log(sum), 1e-5);
  }
  const Tensor half = holding({tokens}, Numbers(std::size_t(tokens), 0.5));
  const auto sum = [&] { return probed(half, ops::square_log_sum({}, logits, 0)); };
  EXPECT_EQ(difference(numbers(dlogits), slopes(logits, sum), slope_near), "");
}

TEST_F(Routing, keeps_the_greatest_weights_or_the_first) {
  const Routed routed{holding({4, 2}, {0.6, 0.4, 0.9, 0.1, 0.7, 0.3, 0.7, 0.3}),
                      integers({4, 2}, {0, 1, 0, 1, 0, 2, 0, 2})};
  EXPECT_EQ(numbers(ops::limit_experts(routed, 2, DropPolicy::probs)), (Numbers{-1, 1, 0, 1, 0, 2, -1, 2}));
  EXPECT_EQ(numbers(ops::limit_experts(routed, 3, DropPolicy::position)), (Numbers{0, 1, 0, 1, 0, 2, -1, 2}));
  EXPECT_EQ(numbers(ops::limit_experts(routed, 4, DropPolicy::probs)), numbers(routed.experts));
}

TEST_F(Routing, orders_rows_by_expert_and_token) {
  const RowPlan plan = ops::plan_rows(integers({3, 2}, {2, 0, -1, 2, 0, 2}), 4);
  EXPECT_EQ(numbers(plan.tokens), (Numbers{0, 2, 0, 1, 2, -1}));
  EXPECT_EQ(numbers(plan.slots), (Numbers{1, 4, 0, 3, 5, -1}));
  EXPECT_EQ(numbers(plan.offsets), (Numbers{0, 2, 2, 5, 5}));
}

// What an expert has no room for is left out.
TEST_F(Routing, gives_every_expert_the_rows_that_it_has_room_for) {
  const RowPlan plan = ops::plan_rows(integers({3, 2}, {2, 0, -1, 2, 0, 2}), 3, 2);
  EXPECT_EQ(numbers(plan.tokens), (Numbers{0, 2, -1, -1, 0, 1}));
  EXPECT_EQ(numbers(plan.slots), (Numbers{1, 4, -1, -1, 0, 3}));
  EXPECT_EQ(numbers(plan.offsets), (Numbers{0, 2, 4, 6}));
  EXPECT_EQ(refused([&] {
              (void)ops::plan_rows(integers({1, 1}, {0}), 1, -1);
            }),
            "plan_rows: room for -1 rows an expert");
}

TEST_F(Routing, moves_the_bias_toward_even_counts) {
  const Tensor bias = holding({4}, {1, 1, 1, 1});
  ops::follow_counts(bias, holding({4}, {4, 0, 6, 6}), 0.25F);
  EXPECT_EQ(numbers(bias), (Numbers{1, 1.25, 0.75, 0.75}));
}

TEST_F(Routing, refuses_what_is_no_choice) {
  const Tensor logits = random({2, 4});
  const auto said = [&](std::int64_t k, const RouteArgs& how) {
    return refused([&] { (void)ops::route(logits, {}, k, how); });
  };
  EXPECT_EQ(said(5, {}), "route: 5 of 4 experts");
  EXPECT_EQ(said(2, {.groups = 3, .groups_kept = 1}), "route: 4 experts in 3 groups");
  EXPECT_EQ(said(3, {.groups = 2, .groups_kept = 1}), "route: 3 experts of the best 1 of 2 groups of 2");
  EXPECT_EQ(said(1, {.groups = 2, .groups_kept = 2}),
            "route: 1 experts are fewer than the 2 groups they are chosen from");
  EXPECT_EQ(refused([&] {
              ops::route_backward_into(zeros({2, 4}, Dtype::f64), zeros({2, 2}), logits,
                                       ops::route(logits, {}, 2, {}), {});
            }),
            "route_backward: dlogits is f64, not f32");
  EXPECT_EQ(refused([&] {
              (void)ops::route(random({2, 0}), {}, 1, {});
            }),
            "route: logits [2, 0] are of no expert");
  EXPECT_EQ(refused([&] {
              (void)ops::count_experts(integers({3, 1}, {0, 0, 0}), 2, 4);
            }),
            "count_experts: 3 tokens are of no 2 samples");
  EXPECT_EQ(refused([&] {
              (void)ops::balance({}, logits, random({2, 3}), RouterScore::softmax, 1);
            }),
            "balance: factors [2, 3] are none of logits [2, 4]");
  EXPECT_EQ(refused([&] { (void)ops::limit_experts(ops::route(logits, {}, 2, {}), -1, DropPolicy::probs); }),
            "limit_experts: -1 tokens an expert");
}

}  // namespace
}  // namespace weft
