// Rows and columns so long, and so many, that every loop over them goes round twice, wherever it is cut: over
// a block of a GPU, its grid, or the vectors of a processor.
#include <array>
#include <vector>

#include "tests/backend/conformance.h"
#include "weft/tensor/exact_sum.h"

namespace weft::conformance {
namespace {

// The last are more than a GPU's block holds, and so many that a block has two of them.
TEST_P(Conformance, normalizes_many_long_rows) {
  for (const auto& [rows, h] : std::vector<std::array<std::int64_t, 2>>{{70, 2056}, {70, 4104}, {66, 32776}})
    same([&](Desk& desk) {
      const Tensor x = desk.normal({rows, 1, h}, Dtype::bf16, 3), dy = desk.normal({rows, 1, h}, Dtype::bf16);
      const Tensor gain = desk.normal({h}, Dtype::bf16), bias = desk.normal({h}, Dtype::bf16);
      const Tensor y = desk.blank({rows, 1, h}, Dtype::bf16), dx = desk.blank({rows, 1, h}, Dtype::bf16);
      const NormStats stats{desk.blank({rows, 1}), desk.blank({rows, 1})};
      desk.kernels().norm(y, stats, x, {gain, bias}, {});
      desk.result("y", y, close(Dtype::bf16, 64, 4));
      const NormGrads grads{dx, desk.normal({h}), desk.normal({h})};
      desk.kernels().norm_backward(grads, dy, {}, {x, stats, gain}, {});
      desk.result("dx", dx, close(Dtype::bf16, 128, 8));
      desk.result("dgain", grads.dgain, close(Dtype::f32, 256, 4));
      desk.result("dbias", grads.dbias, close(Dtype::f32, 256, 4));
    });
}

TEST_P(Conformance, rounds_the_gradient_of_long_rows_once_more) {
  for (const std::int64_t h : {2056, 32776})
    same([&](Desk& desk) {
      const Tensor x = desk.normal({3, 1, h}), dx = desk.normal({3, 1, h}),
                   gain = desk.normal({h}, Dtype::bf16);
      const Tensor dy = desk.normal({3, 1, h}, Dtype::bf16);
      const NormStats stats{{}, desk.blank({3, 1})};
      const NormArgs how{.kind = NormKind::rms};
      desk.kernels().norm(desk.blank({3, 1, h}, Dtype::bf16), stats, x, {gain, {}}, how);
      desk.kernels().norm_backward({dx, desk.normal({h}), {}, dy}, dy, dx, {x, stats, gain}, how);
      desk.result("dx", dx, close(Dtype::f32, 128, 8));
      desk.result("rounded", dy, {2 * rounding(Dtype::bf16), 1e-6});
    });
}

TEST_P(Conformance, adds_drops_and_normalizes_rows_that_no_block_holds) {
  for (const Dtype dtype : floats)
    for (const NormKind kind : {NormKind::layer, NormKind::rms})
      same([&](Desk& desk) {
        constexpr std::int64_t rows = 3, h = 8197;
        const NormArgs how{.kind = kind, .epsilon = 1e-3F, .one_plus_gain = kind == NormKind::rms};
        DropoutArgs dropout{.probability = 0.2F, .at = {.seed = 3, .step = 9, .layer = 2}, .width = h};
        dropout.samples = desk.integers({1}, Dtype::i64, 0, 100);
        dropout.positions = desk.integers({rows}, Dtype::i32, 0, 1000);
        const auto normal = [&](const Shape& shape) { return desk.normal(shape, dtype); };
        const auto blank = [&] { return desk.blank({rows, 1, h}, dtype); };
        const NormWeights w{normal({h}), kind == NormKind::layer ? normal({h}) : Tensor()};
        // A mean that is not near zero, as that of what lies behind a row would be.
        const Tensor bias = desk.holding({h}, dtype, std::vector<double>(h, 3));
        const SumNormIn in{normal({rows, 1, h}), bias, normal({rows, 1, h}), dropout};
        const NormStats stats{kind == NormKind::layer ? desk.blank({rows, 1}) : Tensor(),
                              desk.blank({rows, 1})};
        const SumNormOut out{blank(), blank(), stats};
        desk.kernels().sum_norm(out, in, w, how);
        desk.result("sum", out.sum, close(dtype, 4));
        desk.result("y", out.y, {16 * rounding(dtype) + 1e-6, 64 * rounding(dtype) + 1e-5});
        const Tensor dy = normal({rows, 1, h}), dx = kind == NormKind::layer ? dy : blank();
        const NormGrads grads{dx, desk.normal({h}), kind == NormKind::layer ? desk.normal({h}) : Tensor()};
        desk.kernels().norm_backward(grads, dy, normal({rows, 1, h}), {out.sum, stats, w.gain}, how);
        // Sums may round to neighbours, which everything behind them passes on.
        desk.result("dx", dx, {32 * rounding(dtype) + 1e-5, 256 * rounding(dtype) + 1e-4});
        desk.result("dgain", grads.dgain, {32 * rounding(dtype) + 1e-5, 256 * rounding(dtype) + 1e-4});
        if (grads.dbias) desk.result("dbias", grads.dbias, close(Dtype::f32, 64, 4));
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
