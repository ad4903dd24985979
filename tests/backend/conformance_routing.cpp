// Choosing experts for tokens.
#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

constexpr std::int64_t tokens = 60;

struct Shapes {
  std::int64_t experts, k;
  RouteArgs how;
};

std::vector<Shapes> shapes() {
  std::vector<Shapes> out;
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid, RouterScore::sqrt_softplus}) {
    out.push_back({4, 2, {.score = score}});
    out.push_back({64, 6, {.score = score, .groups = 8, .groups_kept = 3, .scaling = 2.5F}});
    out.push_back({7, 1, {.score = score, .softmax_first = score == RouterScore::softmax}});
    out.push_back({300, 8, {.score = score, .softmax_first = score == RouterScore::softmax}});
  }
  return out;
}

/// Scores of floats and of doubles part by a rounding or two of each exponential.
constexpr Tolerance scores{2e-6, 2e-6};

TEST_P(Conformance, routes_tokens_and_differentiates_the_weights) {
  for (const Shapes& shape : shapes())
    same([&](Desk& desk) {
      const Tensor logits = desk.normal({tokens, shape.experts}, Dtype::f32, 2);
      const Tensor bias = desk.normal({shape.experts}, Dtype::f32, 0.1);
      const Routed routed{desk.blank({tokens, shape.k}), desk.blank({tokens, shape.k}, Dtype::i32)};
      const bool biased = shape.how.score != RouterScore::softmax;
      desk.kernels().route(routed, logits, biased ? bias : Tensor(), shape.how);
      desk.result("experts", routed.experts, exactly);
      desk.result("weights", routed.weights, scores);
      const Tensor dlogits = desk.normal({tokens, shape.experts});
      desk.kernels().route_backward(dlogits, desk.normal({tokens, shape.k}), logits, routed, shape.how);
      desk.result("dlogits", dlogits, {1e-5, 1e-5});
    });
}

TEST_P(Conformance, measures_how_evenly_experts_are_chosen) {
  for (const Shapes& shape : shapes())
    for (const bool differentiated : {false, true})
      same([&](Desk& desk) {
        const Tensor logits = desk.normal({tokens, shape.experts}, Dtype::f32, 2);
        const Tensor factors = desk.normal({3, shape.experts});
        const Tensor terms = desk.blank({tokens});
        const Tensor dlogits = desk.normal({tokens, shape.experts});
        desk.kernels().balance(terms, differentiated ? dlogits : Tensor(), logits, factors, shape.how.score,
                               0.5F);
        desk.result("terms", terms, {1e-5, 1e-5});
        desk.kernels().square_log_sum(terms, differentiated ? dlogits : Tensor(), logits, 0.25F);
        desk.result("squares", terms, {1e-5, 1e-5});
        desk.result("dlogits", dlogits, {1e-5, 1e-5});
      });
}

/// What leaves is f32; what stays is rounded a few times as a double is.
constexpr Tolerance in_doubles{1e-12, 1e-12};

TEST_P(ConformanceInDoubles, chooses_weighs_and_balances) {
  for (const Shapes& shape : shapes())
    same([&](Desk& desk) {
      const Tensor logits = desk.normal({tokens, shape.experts}, Dtype::f64, 2);
      const Tensor bias = desk.normal({shape.experts}, Dtype::f32, 0.1);
      const Routed routed{desk.blank({tokens, shape.k}), desk.blank({tokens, shape.k}, Dtype::i32)};
      const bool biased = shape.how.score != RouterScore::softmax;
      desk.kernels().route(routed, logits, biased ? bias : Tensor(), shape.how);
      desk.result("experts", routed.experts, exactly);
      desk.result("weights", routed.weights, {1e-7, 1e-7});
      const Tensor dlogits = desk.normal({tokens, shape.experts}, Dtype::f64);
      desk.kernels().route_backward(dlogits, desk.normal({tokens, shape.k}), logits, routed, shape.how);
      const Tensor terms = desk.blank({tokens});
      desk.kernels().balance(terms, dlogits, logits, desk.normal({3, shape.experts}), shape.how.score, 0.5F);
      desk.result("terms", terms, {1e-6, 1e-6});
      desk.kernels().square_log_sum(terms, dlogits, logits, 0.25F);
      desk.result("squares", terms, {1e-7, 1e-7});
      desk.result("dlogits", dlogits, in_doubles);
      const Tensor values = desk.blank({tokens, shape.k}, Dtype::f64);
      desk.kernels().top_k(values, routed.experts, logits);
      desk.result("greatest", values, exactly);
    });
}

struct Crowd {
  std::int64_t tokens, experts, most;
  DropPolicy policy;
};

/// Of 41 sizes, above and below nothing, and noughts of both signs.
std::vector<double> few_weights(std::int64_t count) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const double size = double(i * 7919 % 41 - 20) / 8;
    out.push_back(size == 0 && i % 2 == 1 ? -0.0 : size);
  }
  return out;
}

/// Many choices an expert, of whom several are worth the same; more experts than blocks; nobody, everybody.
TEST_P(Conformance, limits_experts_that_many_chose) {
  for (const Crowd& crowd :
       {Crowd{1200, 2, 390, DropPolicy::probs}, Crowd{300, 3, 74, DropPolicy::probs},
        Crowd{300, 3, 74, DropPolicy::position}, Crowd{1200, 1, 1130, DropPolicy::position},
        Crowd{200, 300, 1, DropPolicy::position}, Crowd{40, 2, 0, DropPolicy::probs},
        Crowd{40, 2, 80, DropPolicy::probs}})
    same([&](Desk& desk) {
      const Routed routed{desk.holding({crowd.tokens, 2}, Dtype::f32, few_weights(2 * crowd.tokens)),
                          desk.integers({crowd.tokens, 2}, Dtype::i32, -1, crowd.experts)};
      const Tensor kept = desk.blank({crowd.tokens, 2}, Dtype::i32);
      desk.kernels().limit_experts(kept, routed, crowd.most, crowd.policy);
      desk.result("kept", kept, exactly);
      const Tensor counts = desk.blank({2, crowd.experts});
      desk.kernels().count_experts(counts, kept);
      desk.result("counts", counts, exactly);
    });
}

void orders_rows(Desk& desk, const Tensor& chosen, std::int64_t experts, std::int64_t room) {
  const std::int64_t rows = room > 0 ? experts * room : chosen.elements();
  const RowPlan plan{desk.blank({rows}, Dtype::i32), desk.blank({rows}, Dtype::i32),
                     desk.blank({experts + 1}, Dtype::i64)};
  desk.kernels().plan_rows(plan, chosen, room);
  desk.result("tokens", plan.tokens, exactly);
  desk.result("slots", plan.slots, exactly);
  desk.result("offsets", plan.offsets, exactly);
}

TEST_P(Conformance, counts_drops_and_orders_what_was_chosen) {
  for (const std::int64_t experts : {1, 5, 64})
    for (const DropPolicy policy : {DropPolicy::probs, DropPolicy::position})
      same([&](Desk& desk) {
        const Routed routed{desk.normal({tokens, 2}), desk.integers({tokens, 2}, Dtype::i32, 0, experts)};
        const Tensor kept = desk.blank({tokens, 2}, Dtype::i32);
        desk.kernels().limit_experts(kept, routed, 2 * tokens / experts / 2, policy);
        desk.result("kept", kept, exactly);
        const Tensor counts = desk.blank({4, experts});
        desk.kernels().count_experts(counts, kept);
        desk.result("counts", counts, exactly);
        orders_rows(desk, kept, experts, 0);
        const Tensor bias = desk.normal({experts});
        desk.kernels().follow_counts(bias, desk.integers({experts}, Dtype::f32, 0, 4), 0.125F);
        desk.result("bias", bias, {1e-6, 1e-7});
      });
}

TEST_P(Conformance, orders_the_rows_of_many_tokens) {
  for (const std::int64_t experts : {1, 8, 200})
    same([&](Desk& desk) {
      const Tensor chosen = desk.integers({1500, 2}, Dtype::i32, -1, experts);
      orders_rows(desk, chosen, experts, 0);
    });
}

/// Less room than some are chosen, as much as any is, and more than anybody wants.
TEST_P(Conformance, orders_the_rows_of_experts_by_their_room) {
  for (const std::int64_t experts : {1, 8, 70})
    for (const std::int64_t room : {1, 40, 1300, 3100}) {
      if (experts * room > 30000) continue;
      same([&](Desk& desk) {
        const Tensor chosen = desk.integers({1500, 2}, Dtype::i32, -1, experts);
        orders_rows(desk, chosen, experts, room);
      });
    }
}

}  // namespace
}  // namespace weft::conformance
