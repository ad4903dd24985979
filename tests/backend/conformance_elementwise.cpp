// One pass over elements: all ways to lie, all types, mixed types, operands that are their own result.
#include "tests/backend/conformance.h"
#include "weft/tensor/host.h"

namespace weft::conformance {
namespace {

const std::vector<Shape> shapes{{1},        {7},           {64},   {3, 5},    {2, 130},
                                {4, 3, 33}, {2, 3, 2, 17}, {0, 4}, {1000, 20}};

TEST_P(Conformance, fills_and_copies_between_all_types) {
  for (const Dtype from :
       {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f64, Dtype::i64, Dtype::i32, Dtype::u8})
    for (const Dtype to :
         {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f64, Dtype::i64, Dtype::i32, Dtype::u8}) {
      SCOPED_TRACE(text(name(from), " to ", name(to)));
      same_however_it_lies([&](Desk& desk) {
        const Tensor in = desk.integers({5, 3, 37}, from, 0, 200);
        const Tensor out = desk.blank({5, 3, 37}, to);
        desk.kernels().copy(out, in);
        desk.result("out", out, exactly);
        desk.kernels().fill(out, 5);
        desk.result("filled", out, exactly);
      });
    }
}

TEST_P(Conformance, rounds_to_the_nearest_when_copying) {
  for (const Dtype to : {Dtype::bf16, Dtype::f16, Dtype::f32})
    same([&](Desk& desk) {
      const Tensor in = desk.normal({999});
      const Tensor out = desk.blank({999}, to);
      desk.kernels().copy(out, in);
      desk.result("out", out, exactly);
    });
}

TEST_P(Conformance, adds_and_multiplies) {
  for (const Shape& shape : shapes)
    for (const Dtype dtype : floats) {
      SCOPED_TRACE(text(shape, " of ", name(dtype)));
      same_however_it_lies([&](Desk& desk) {
        const Tensor a = desk.normal(shape, dtype);
        const Tensor b = desk.normal(shape, dtype);
        const Tensor out = desk.blank(shape, dtype);
        desk.kernels().add(out, a, b);
        desk.result("a + b", out, close(dtype));
        desk.kernels().multiply(out, a, b);
        desk.result("a b", out, close(dtype));
        desk.kernels().add(a, a, b);
        desk.result("a += b", a, close(dtype));
        desk.kernels().scale(a, -1.5F);
        desk.result("scaled", a, close(dtype, 4));
        desk.kernels().add_scaled(b, a, 0.25F);
        desk.result("b += a / 4", b, {4 * rounding(dtype), 4 * rounding(dtype)});
      });
    }
}

TEST_P(Conformance, adds_mixed_types) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
    same_however_it_lies([&](Desk& desk) {
      const Tensor sum = desk.normal({6, 70});
      const Tensor x = desk.normal({6, 70}, dtype);
      desk.kernels().add_scaled(sum, x, 0.5F);
      desk.result("sum", sum, close(Dtype::f32));
      const Tensor out = desk.blank({6, 70}, dtype);
      desk.kernels().add(out, x, sum);
      desk.result("out", out, close(dtype, 4));
    });
}

TEST_P(Conformance, adds_a_bias_to_rows_and_sums_rows) {
  for (const Shape& shape : {Shape{1, 1}, Shape{9, 33}, Shape{5, 2, 64}, Shape{300, 17}, Shape{0, 8}})
    for (const Dtype dtype : floats) {
      SCOPED_TRACE(text(shape, " of ", name(dtype)));
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal(shape, dtype);
        desk.kernels().add_bias(x, desk.normal({shape[-1]}, dtype));
        desk.result("x + bias", x, close(dtype));
        const Tensor dbias = desk.normal({shape[-1]});
        desk.kernels().sum_rows(dbias, desk.normal(shape, dtype));
        desk.result("dbias", dbias,
                    close(Dtype::f32, shape.elements() / std::max<std::int64_t>(1, shape[-1])));
      });
    }
}

// A device may hold only so much on its way at once; tensors are copied by themselves, rows with gaps too.
TEST_P(Conformance, carries_many_copies_before_any_is_waited_for) {
  constexpr std::int64_t rows = 30;
  same([](Desk& desk) {
    std::vector<Tensor> all;
    for (std::int64_t i = 0; i < rows; ++i) all.push_back(desk.normal({700}));
    const std::vector<double> apart = numbers(desk.normal({rows, 6}).slice(1, 1, 4));
    desk.result("rows", desk.holding({rows, 4}, Dtype::f32, apart), exactly);
    for (const Tensor& each : all) desk.result("tensor", each, exactly);
  });
}

}  // namespace
}  // namespace weft::conformance
