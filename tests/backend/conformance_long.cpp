// Rows and columns so long, and so many, that every loop over them goes round twice, wherever it is cut: over
// a block of a GPU, its grid, or the vectors of a processor.
#include "tests/backend/conformance.h"
#include "weft/tensor/exact_sum.h"

namespace weft::conformance {
namespace {

TEST_P(Conformance, normalizes_many_long_rows) {
  for (const std::int64_t h : {2056, 4104})
    same([&](Desk& desk) {
      const Tensor x = desk.normal({70, 1, h}, Dtype::bf16, 3), dy = desk.normal({70, 1, h}, Dtype::bf16);
      const Tensor gain = desk.normal({h}, Dtype::bf16), bias = desk.normal({h}, Dtype::bf16);
      const Tensor y = desk.blank({70, 1, h}, Dtype::bf16), dx = desk.blank({70, 1, h}, Dtype::bf16);
      const NormStats stats{desk.blank({70, 1}), desk.blank({70, 1})};
      desk.kernels().norm(y, stats, x, {gain, bias}, {});
      desk.result("y", y, close(Dtype::bf16, 64, 4));
      const NormGrads grads{dx, desk.normal({h}), desk.normal({h})};
      desk.kernels().norm_backward(grads, dy, {}, {x, stats, gain}, {});
      desk.result("dx", dx, close(Dtype::bf16, 128, 8));
      desk.result("dgain", grads.dgain, close(Dtype::f32, 256, 4));
      desk.result("dbias", grads.dbias, close(Dtype::f32, 256, 4));
    });
}

TEST_P(Conformance, sums_many_rows_and_multiplies_long_ones) {
  same([&](Desk& desk) {
    const Tensor x = desk.normal({1100, 264}, Dtype::bf16), y = desk.normal({1100, 264}, Dtype::bf16);
    const Tensor sums = desk.normal({264}), dots = desk.blank({1100});
    desk.kernels().sum_rows(sums, x);
    desk.result("sums", sums, close(Dtype::f32, 1100));
    desk.kernels().dot_rows(dots, x, y);
    desk.result("dots", dots, close(Dtype::f32, 264));
  });
}

TEST_P(Conformance, looks_for_words_among_many) {
  same([&](Desk& desk) {
    const VocabularyPart part{0, 4999, 4999};
    const Tensor logits = desk.normal({3, 5000}, Dtype::bf16, 3),
                 ids = desk.integers({3}, Dtype::i32, 0, 4999);
    const LossParts parts{desk.blank({3}), desk.blank({3}), desk.blank({3})};
    desk.kernels().loss_max(parts, logits, part);
    desk.kernels().loss_sums(parts, logits, ids, part);
    desk.result("sum", parts.sum, close(Dtype::f32, 5000));
    const Tensor loss = desk.blank({3});
    desk.kernels().loss_finish(loss, parts);
    desk.result("loss", loss, close(Dtype::f32, 64, 8));
    desk.kernels().loss_backward(logits, parts, {ids, desk.normal({3})}, part);
    desk.result("gradient", logits, close(Dtype::bf16, 64, 2));
  });
}

TEST_P(Conformance, softens_long_rows) {
  same([&](Desk& desk) {
    const Tensor x = desk.normal({4, 2500}, Dtype::bf16, 4), y = desk.blank({4, 2500}, Dtype::bf16);
    desk.kernels().softmax(y, x);
    desk.result("y", y, close(Dtype::bf16, 64));
  });
}

TEST_P(Conformance, adds_up_more_than_a_grid_takes_at_once) {
  constexpr std::int64_t n = 128 * 256 * 8 + 1000;
  same([&](Desk& desk) {
    const Tensor x = desk.normal({n}), whole = desk.blank({1}, Dtype::i64), sum = desk.blank({1}, Dtype::f64);
    const Tensor digits = desk.holding({exact_digits}, Dtype::f64, std::vector<double>(exact_digits, 0));
    desk.kernels().sum(sum, x);
    desk.result("sum", sum, {1e-12, 1e-12 * double(n)});
    desk.kernels().sum_squares(digits, x);
    desk.result("squares", digits, exactly);
    desk.kernels().find_nonfinite(whole, x);
    desk.result("found", whole, exactly);
  });
}

TEST_P(Conformance, adds_many_tokens_to_wide_rows) {
  same([&](Desk& desk) {
    const Tensor table = desk.normal({9, 2100}), more = desk.normal({600, 2100}, Dtype::bf16);
    desk.kernels().scatter_add(table, more, desk.integers({600}, Dtype::i32, 0, 9), 0);
    desk.result("table", table, close(Dtype::f32, 100));
  });
}

}  // namespace
}  // namespace weft::conformance
