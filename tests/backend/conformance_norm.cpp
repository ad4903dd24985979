// Norms: both kinds, widths that fill vectors and widths that do not, fused with the addition before them.
#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

struct Case {
  std::int64_t s, b, h;
  NormKind kind;
  Dtype dtype;
  bool one_plus;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const std::int64_t h : {1, 5, 16, 63, 128, 769})
    for (const NormKind kind : {NormKind::layer, NormKind::rms})
      for (const Dtype dtype : floats) out.push_back({5, 3, h, kind, dtype, h == 63});
  return out;
}

NormWeights weights(Desk& desk, const Case& c) {
  NormWeights out{desk.normal({c.h}, c.dtype), {}};
  if (c.kind == NormKind::layer && c.h != 16 && c.h != 128) out.bias = desk.normal({c.h}, c.dtype);
  return out;
}

NormStats stats(Desk& desk, const Case& c) {
  const Lay none = Lay::contiguous;
  desk.lay(none);
  NormStats out{{}, desk.blank({c.s, c.b})};
  if (c.kind == NormKind::layer) out.mean = desk.blank({c.s, c.b});
  return out;
}

NormArgs args(const Case& c) { return {.kind = c.kind, .epsilon = 1e-3F, .one_plus_gain = c.one_plus}; }

std::string told(const Case& c) {
  return text("h ", c.h, " of ", name(c.dtype), c.kind == NormKind::rms ? ", rms" : ", layer");
}

TEST_P(Conformance, normalizes) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(told(c));
    same_however_it_lies([&](Desk& desk) {
      const Tensor x = desk.normal({c.s, c.b, c.h}, c.dtype, 3);
      const NormWeights w = weights(desk, c);
      const Tensor y = desk.blank({c.s, c.b, c.h}, c.dtype);
      const NormStats kept = stats(desk, c);
      desk.kernels().norm(y, kept, x, w, args(c));
      desk.result("y", y, close(c.dtype, 64, 4));
      desk.result("rstd", kept.rstd, close(Dtype::f32, 16));
      if (kept.mean) desk.result("mean", kept.mean, close(Dtype::f32, 16));
    });
  }
}

TEST_P(Conformance, gives_derivatives_of_norms) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(told(c));
    for (const bool with_residual : {false, true})
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal({c.s, c.b, c.h}, c.dtype, 3);
        const NormWeights w = weights(desk, c);
        const Tensor dy = desk.normal({c.s, c.b, c.h}, c.dtype);
        const Tensor residual = with_residual ? desk.normal({c.s, c.b, c.h}, c.dtype) : Tensor();
        const Tensor dx = with_residual ? residual : desk.blank({c.s, c.b, c.h}, c.dtype);
        const NormStats kept = stats(desk, c);
        desk.kernels().norm(desk.blank({c.s, c.b, c.h}, c.dtype), kept, x, w, args(c));
        const NormGrads grads{dx, desk.normal({c.h}),
                              c.kind == NormKind::layer ? desk.normal({c.h}) : Tensor()};
        desk.kernels().norm_backward(grads, dy, residual, {x, kept, w.gain}, args(c));
        desk.result("dx", dx, close(c.dtype, 128, 8));
        desk.result("dgain", grads.dgain, close(Dtype::f32, 128, 4));
        if (grads.dbias) desk.result("dbias", grads.dbias, close(Dtype::f32, 64, 4));
      });
  }
}

TEST_P(Conformance, needs_no_gradients_that_nobody_asks_for) {
  same([&](Desk& desk) {
    const Case c{5, 3, 20, NormKind::layer, Dtype::f32, false};
    const Tensor x = desk.normal({c.s, c.b, c.h});
    const NormWeights w = weights(desk, c);
    const NormStats kept = stats(desk, c);
    const Tensor dx = desk.normal({c.s, c.b, c.h});
    desk.kernels().norm(desk.blank({c.s, c.b, c.h}), kept, x, w, args(c));
    desk.kernels().norm_backward({dx, {}, {}}, dx, {}, {x, kept, w.gain}, args(c));
    desk.result("dx in place of dy", dx, close(c.dtype, 128));
  });
}

TEST_P(Conformance, adds_drops_and_normalizes_in_one_pass) {
  for (const Case& c : cases())
    for (const float probability : {0.0F, 0.2F}) {
      SCOPED_TRACE(told(c));
      same([&](Desk& desk) {
        DropoutArgs dropout{.probability = probability, .at = {.seed = 3, .step = 9, .layer = 2}};
        dropout.samples = desk.integers({c.b}, Dtype::i64, 0, 100);
        dropout.positions = desk.integers({c.s}, Dtype::i32, 0, 1000);
        dropout.width = c.h + 10;
        dropout.channel = 7;
        const Tensor bias = c.h % 2 == 1 ? desk.normal({c.h}, c.dtype) : Tensor();
        const SumNormIn in{desk.normal({c.s, c.b, c.h}, c.dtype), bias, desk.normal({c.s, c.b, c.h}, c.dtype),
                           dropout};
        const NormWeights w = weights(desk, c);
        const SumNormOut out{desk.blank({c.s, c.b, c.h}, c.dtype), desk.blank({c.s, c.b, c.h}, c.dtype),
                             stats(desk, c)};
        desk.kernels().sum_norm(out, in, w, args(c));
        desk.result("sum", out.sum, close(c.dtype, 4));
        // The sums of two right answers may round to neighbours, which the norm passes on.
        desk.result("y", out.y, {16 * rounding(c.dtype) + 1e-6, 64 * rounding(c.dtype) + 1e-5});
        desk.result("rstd", out.stats.rstd, {16 * rounding(c.dtype), 1e-6});
      });
    }
}

TEST_P(Conformance, keeps_a_residual_stream_in_f32) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms})
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
      same([&](Desk& desk) {
        const Case c{4, 2, 70, kind, dtype, false};
        const NormWeights w = weights(desk, c);
        const SumNormIn in{desk.normal({4, 2, 70}, c.dtype), {}, desk.normal({4, 2, 70}), {}};
        const SumNormOut out{desk.blank({4, 2, 70}), desk.blank({4, 2, 70}, c.dtype), stats(desk, c)};
        desk.kernels().sum_norm(out, in, w, args(c));
        desk.result("sum", out.sum, close(Dtype::f32));
        desk.result("y", out.y, close(c.dtype, 64, 4));
        const Tensor dx = desk.blank({4, 2, 70});
        const Tensor dy = desk.normal({4, 2, 70}, c.dtype);
        desk.kernels().norm_backward({dx, {}, {}}, dy, desk.normal({4, 2, 70}), {out.sum, out.stats, w.gain},
                                     args(c));
        desk.result("dx", dx, close(Dtype::f32, 128, 8));
      });
}

// Rounded in the place of what it is made of, by pieces too.
TEST_P(Conformance, rounds_the_gradient_of_a_residual_stream_once_more) {
  for (const std::int64_t h : {5, 70, 769})
    for (const bool in_pieces : {false, true})
      for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
        same_however_it_lies([&](Desk& desk) {
          const Case c{6, 2, h, NormKind::layer, dtype, false};
          const NormWeights w = weights(desk, c);
          const Tensor x = desk.normal({6, 2, h}), dx = desk.normal({6, 2, h});
          const Tensor dy = desk.normal({6, 2, h}, dtype);
          const NormStats kept = stats(desk, c);
          desk.kernels().norm(desk.blank({6, 2, h}, dtype), kept, x, w, args(c));
          const Shape sums = in_pieces ? Shape{3, h} : Shape{h};
          const NormGrads grads{dx, desk.normal(sums), desk.normal(sums), dy};
          desk.kernels().norm_backward(grads, dy, dx, {x, kept, w.gain}, args(c));
          desk.result("dx", dx, close(Dtype::f32, 128, 8));
          // Of two right answers one may round to the neighbour.
          desk.result("rounded", dy, {2 * rounding(dtype), 1e-6});
          desk.result("dgain", grads.dgain, close(Dtype::f32, 128, 4));
        });
}

TEST_P(Conformance, scales_rows_and_multiplies_rows_with_rows) {
  for (const Dtype dtype : floats)
    same_however_it_lies([&](Desk& desk) {
      const Tensor x = desk.normal({6, 5, 65}, dtype);
      const Tensor y = desk.blank({6, 5, 65}, dtype);
      desk.kernels().scale_rows(y, x, desk.normal({6, 5}));
      desk.result("y", y, close(dtype));
      const Tensor dots = desk.blank({6, 5});
      desk.kernels().dot_rows(dots, x, desk.normal({6, 5, 65}, dtype));
      desk.result("dots", dots, close(Dtype::f32, 65));
    });
}

}  // namespace
}  // namespace weft::conformance
