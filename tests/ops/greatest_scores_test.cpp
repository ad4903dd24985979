// Greatest scores of heads, against plain loops over all pairs; what is raised, and what is refused.
#include <cmath>
#include <limits>

#include "tests/ops/fixture.h"
#include "tests/support/made.h"
#include "weft/ops/attention.h"

namespace weft {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

class GreatestScores : public Ops {
 protected:
  // sq 7, sk 6, b 2, g 2, r 2, d 4
  Attended in{random({7, 2, 2, 2, 4}), random({6, 2, 2, 4}), random({6, 2, 2, 4})};
  Tensor greatest = filled(minus_infinity);

  Tensor filled(float x) { return holding({4}, std::vector<double>(4, double(x))); }
  double raised(AttentionArgs how, std::int64_t head) {
    how.greatest = filled(minus_infinity);
    (void)ops::attention(in, how);
    return numbers(how.greatest)[std::size_t(head)];
  }
};

double element_at(const Tensor& x, std::initializer_list<std::int64_t> index) {
  Tensor at = x;
  for (const std::int64_t i : index) at = at.at(0, i);
  return number(at);
}

bool seen_by_place(const AttentionArgs& how, std::int64_t i, std::int64_t j) {
  if (how.mask == Mask::causal && j > i + how.diagonal) return false;
  if (how.window > 0 && j <= i + how.diagonal - how.window) return false;
  return how.chunk == 0 || i / how.chunk == j / how.chunk;
}

double in_plain_loops(const Attended& in, const AttentionArgs& how, std::int64_t head) {
  const std::int64_t g = head / 2, r = head % 2;
  double greatest = double(minus_infinity);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < 7; ++i)
      for (std::int64_t j = 0; j < 6; ++j) {
        double score = 0;
        for (std::int64_t c = 0; c < 4; ++c)
          score += element_at(in.q, {i, b, g, r, c}) * element_at(in.k, {j, b, g, c});
        score *= double(how.scale);
        if (how.cap > 0) score = double(how.cap) * std::tanh(score / double(how.cap));
        if (how.bias) score += element_at(how.bias, {head, i - j + how.bias0});
        if (seen_by_place(how, i, j)) greatest = std::max(greatest, score);
      }
  return greatest;
}

}  // namespace

TEST_F(GreatestScores, are_those_of_pairs_that_see_each_other_as_softmax_sees_them) {
  const AttentionArgs ways[] = {{.scale = 0.7F},
                                {.scale = 0.7F, .mask = Mask::causal},
                                {.scale = 0.7F, .mask = Mask::causal, .diagonal = -3},
                                {.scale = -0.7F, .mask = Mask::causal, .window = 2},
                                {.scale = 0.7F, .cap = 0.4F},
                                {.scale = 0.7F, .bias = random({4, 13}), .bias0 = 6},
                                {.scale = 0.7F, .mask = Mask::causal, .chunk = 3},
                                {.scale = 0.7F, .sinks = random({4})}};
  for (const AttentionArgs& how : ways)
    for (std::int64_t head = 0; head < 4; ++head)
      EXPECT_NEAR(raised(how, head), in_plain_loops(in, how, head), 1e-5) << how.chunk << " " << head;
}

TEST_F(GreatestScores, of_what_was_seen_before_stay_where_they_are_greater) {
  AttentionArgs how{.scale = 0.7F};
  how.greatest = filled(1000);
  (void)ops::attention(in, how);
  EXPECT_EQ(numbers(how.greatest), std::vector<double>(4, 1000));
}

TEST_F(GreatestScores, that_are_no_numbers_are_infinite_and_stay_so) {
  AttentionArgs how{.scale = std::numeric_limits<float>::quiet_NaN()};
  how.greatest = greatest;
  (void)ops::attention(in, how);
  how.scale = 0.7F;
  (void)ops::attention(in, how);
  EXPECT_EQ(numbers(greatest), std::vector<double>(4, std::numeric_limits<double>::infinity()));
}

TEST_F(GreatestScores, are_none_where_nothing_is_seen) {
  EXPECT_EQ(raised({.mask = Mask::causal, .diagonal = -7}, 0), double(minus_infinity));
}

TEST_F(GreatestScores, change_nothing_of_what_attention_gives) {
  AttentionArgs how{.scale = 0.7F, .mask = Mask::causal};
  const AttentionOut plain = ops::attention(in, how);
  how.greatest = greatest;
  const AttentionOut told = ops::attention(in, how);
  EXPECT_EQ(numbers(told.o), numbers(plain.o));
  EXPECT_EQ(numbers(told.lse), numbers(plain.lse));
  EXPECT_FALSE(bool(told.greatest));
}

TEST_F(GreatestScores, are_one_for_each_head) {
  EXPECT_EQ(refused([&] { (void)ops::attention(in, {.greatest = random({3})}); }),
            "attention: greatest is [3], not [4]");
}

}  // namespace weft
