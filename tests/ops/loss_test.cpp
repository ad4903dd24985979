// The loss in pieces against cross entropy written out, whole and cut, and its gradient against differences.
#include <algorithm>
#include <cmath>

#include "tests/ops/fixture.h"
#include "tests/support/made.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/loss.h"

namespace weft {
namespace {

constexpr std::int64_t tokens = 5;
constexpr std::int64_t words = 7;

class LossOps : public Ops {
 protected:
  Tensor targets() { return integers({tokens}, {0, 6, 3, 3, 2}); }

  /// -log softmax at the target
  std::vector<double> written_out(const Tensor& logits) {
    const std::vector<double> ids = numbers(targets());
    std::vector<double> out;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::vector<double> row = numbers(logits.at(0, t).slice(0, 0, words));
      double sum = 0;
      for (const double x : row) sum += std::exp(x);
      out.push_back(std::log(sum) - row[std::size_t(ids[std::size_t(t)])]);
    }
    return out;
  }

  Tensor whole_loss(const Tensor& logits) {
    const VocabularyPart all{0, words, words};
    const Tensor max = ops::loss_max(logits, all);
    return ops::loss_finish(ops::loss_sums(max, logits, targets(), all).parts);
  }
};

TEST_F(LossOps, give_the_cross_entropy) {
  const Tensor logits = random({tokens, words + 3}, Dtype::f32, 3);  // 3 columns of padding
  EXPECT_EQ(difference(numbers(whole_loss(logits)), written_out(logits), f32_near), "");
}

TEST_F(LossOps, give_the_gradient_that_differences_show) {
  const Tensor logits = random({tokens, words + 3}, Dtype::f32, 3);
  const Tensor weight = random({tokens});
  const std::vector<double> expected = slopes(logits, [&] { return probed(weight, whole_loss(logits)); });
  const VocabularyPart all{0, words, words};
  const ops::LossSums sums = ops::loss_sums(ops::loss_max(logits, all), logits, targets(), all);
  ops::loss_backward_in_place(logits, sums.parts, {targets(), weight}, all);
  EXPECT_EQ(difference(numbers(logits), expected, slope_near), "");
  EXPECT_EQ(numbers(logits.slice(1, words, 3)), std::vector<double>(15, 0));
}

TEST_F(LossOps, at_once_are_what_the_pieces_are) {
  const VocabularyPart all{0, words, words};
  const Tensor logits = random({tokens, words + 3}, Dtype::f32, 3), weight = random({tokens});
  const Tensor others = holding({tokens, words + 3}, numbers(logits));
  const ops::LossSums sums = ops::loss_sums(ops::loss_max(others, all), others, targets(), all);
  const Tensor expected = ops::loss_finish(sums.parts);
  ops::loss_backward_in_place(others, sums.parts, {targets(), weight}, all);
  EXPECT_EQ(numbers(ops::loss_and_gradient_in_place(logits, {targets(), weight}, all)), numbers(expected));
  EXPECT_EQ(numbers(logits), numbers(others));
}

TEST_F(LossOps, at_once_want_the_whole_vocabulary) {
  const Tensor logits = random({tokens, 4}), weight = random({tokens});
  EXPECT_EQ(refused([&] {
              (void)ops::loss_and_gradient_in_place(logits, {targets(), weight}, {0, 4, words});
            }),
            "loss_and_gradient: words 0 to 4 are not all of 7");
  EXPECT_EQ(refused([&] {
              (void)ops::loss_and_gradient_in_place(logits, {targets(), random({3})}, {0, 4, 4});
            }),
            "loss_and_gradient: weight [3] has 3 elements for 5 tokens");
}

/// What ranks do: the greatest of the maxima, the sum of the sums.
ops::LossSums joined(const Tensor& left, const Tensor& right, const Tensor& targets) {
  const VocabularyPart low{0, 4, words};
  const VocabularyPart high{4, 3, words};
  const Tensor max = ops::loss_max(left, low);
  const std::vector<float> other = to_host<float>(ops::loss_max(right, high));
  for (std::size_t t = 0; t < other.size(); ++t) max.as<float>()[t] = std::max(max.as<float>()[t], other[t]);
  const ops::LossSums sums = ops::loss_sums(max, left, targets, low);
  ops::add_scaled_into(sums.all, ops::loss_sums(max, right, targets, high).all);
  return sums;
}

TEST_F(LossOps, of_a_cut_vocabulary_are_those_of_the_whole) {
  const Tensor logits = random({tokens, words}, Dtype::f32, 3);
  const Tensor weight = random({tokens});
  const Tensor left = testing::add(logits.slice(1, 0, 4), zeros({tokens, 4}));
  const Tensor right = testing::add(logits.slice(1, 4, 3), zeros({tokens, 3}));
  const ops::LossSums sums = joined(left, right, targets());
  EXPECT_EQ(difference(numbers(ops::loss_finish(sums.parts)), written_out(logits), f32_near), "");
  const std::vector<double> expected = slopes(logits, [&] { return probed(weight, whole_loss(logits)); });
  ops::loss_backward_in_place(left, sums.parts, {targets(), weight}, {0, 4, words});
  ops::loss_backward_in_place(right, sums.parts, {targets(), weight}, {4, 3, words});
  ops::copy_into(logits.slice(1, 0, 4), left);
  ops::copy_into(logits.slice(1, 4, 3), right);
  EXPECT_EQ(difference(numbers(logits), expected, slope_near), "");
}

TEST_F(LossOps, of_large_logits_do_not_overflow) {
  const Tensor logits = holding({1, 2}, {10000, 9000});
  const VocabularyPart all{0, 2, 2};
  const ops::LossSums sums = ops::loss_sums(ops::loss_max(logits, all), logits, integers({1}, {1}), all);
  EXPECT_EQ(number(ops::loss_finish(sums.parts)), 1000);
}

TEST_F(LossOps, take_tokens_of_any_shape) {
  const Tensor logits = random({2, 3, words});
  const VocabularyPart all{0, words, words};
  const Tensor ids = integers({2, 3}, {0, 1, 2, 3, 4, 5});
  const ops::LossSums sums = ops::loss_sums(ops::loss_max(logits, all), logits, ids, all);
  EXPECT_EQ(ops::loss_finish(sums.parts).shape(), (Shape{6}));
}

TEST_F(LossOps, say_what_does_not_fit) {
  const Tensor logits = random({tokens, words});
  const VocabularyPart all{0, words, words};
  const Tensor max = ops::loss_max(logits, all);
  EXPECT_EQ(refused([&] {
              (void)ops::loss_max(logits, {0, 8, 8});
            }),
            "loss_max: logits have 7 columns for 8 words");
  EXPECT_EQ(refused([&] {
              (void)ops::loss_max(logits, {4, 7, 10});
            }),
            "loss_max: words 4 to 11 are not among 10");
  EXPECT_EQ(refused([&] {
              (void)ops::loss_sums(max, logits, integers({4}, {0, 0, 0, 0}), all);
            }),
            "loss_sums: targets [4] has 4 elements for 5 tokens");
  EXPECT_EQ(refused([&] { (void)ops::loss_finish({max, max, {}}); }), "loss_finish: target has no memory");
  EXPECT_EQ(refused([&] {
              ops::loss_backward_in_place(logits, {max, max, max}, {targets(), random({4})}, all);
            }),
            "loss_backward: weight [4] has 4 elements for 5 tokens");
}

}  // namespace
}  // namespace weft
