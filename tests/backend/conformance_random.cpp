// What is random is addressed, so it must be the same everywhere.
#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

DropoutArgs dropped(Desk& desk, float probability, const Shape& shape) {
  DropoutArgs how{.probability = probability};
  how.at = {.seed = 11, .purpose = Purpose::dropout_hidden, .step = 4, .layer = 3};
  how.samples = desk.integers({shape[1]}, Dtype::i64, 0, 1 << 20);
  how.positions = desk.integers({shape[0]}, Dtype::i32, 0, 4096);
  how.width = shape[2] + 9;
  how.channel = 6;
  return how;
}

const std::vector<Shape> shapes{{1, 1, 1}, {4, 3, 33}, {7, 2, 128}, {3, 1, 70}, {0, 2, 8}};

TEST_P(Conformance, drops_the_same_elements) {
  for (const Shape& shape : shapes)
    for (const Dtype dtype : floats)
      for (const float probability : {0.0F, 0.1F, 0.75F})
        same_however_it_lies([&](Desk& desk) {
          const Tensor x = desk.normal(shape, dtype);
          const Tensor y = desk.blank(shape, dtype);
          desk.lay(Lay::contiguous);
          const DropoutArgs how = dropped(desk, probability, shape);
          desk.kernels().dropout(y, x, how);
          desk.result("y", y, close(dtype));
          desk.kernels().dropout(x, x, how);
          desk.result("y in place of x", x, close(dtype));
        });
}

TEST_P(Conformance, adds_bias_drops_and_adds_the_residual) {
  for (const Shape& shape : shapes)
    for (const Dtype dtype : floats)
      for (const bool biased : {false, true})
        same_however_it_lies([&](Desk& desk) {
          const Tensor x = desk.normal(shape, dtype);
          const Tensor residual = desk.normal(shape, dtype);
          const Tensor bias = biased ? desk.normal({shape[2]}, dtype) : Tensor();
          desk.lay(Lay::contiguous);
          const DropoutArgs how = dropped(desk, 0.3F, shape);
          const Tensor out = desk.blank(shape, dtype);
          desk.kernels().bias_dropout_add(out, x, bias, residual, how);
          desk.result("out", out, close(dtype, 8));
          desk.kernels().bias_dropout_add(residual, x, bias, residual, how);
          desk.result("out in place of residual", residual, close(dtype, 8));
        });
}

TEST_P(Conformance, drops_and_adds_beside_a_residual_stream_in_f32) {
  for (const Shape& shape : shapes)
    for (const float probability : {0.0F, 0.3F})
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal(shape, Dtype::bf16), residual = desk.normal(shape);
        const Tensor bias = desk.normal({shape[2]}, Dtype::bf16);
        desk.lay(Lay::contiguous);
        const DropoutArgs how = dropped(desk, probability, shape);
        const Tensor sum = desk.blank(shape), dx = desk.blank(shape, Dtype::bf16);
        desk.kernels().bias_dropout_add(sum, x, bias, residual, how);
        desk.result("sum", sum, close(Dtype::f32, 8));
        desk.kernels().dropout(dx, residual, how);
        desk.result("dropped", dx, close(Dtype::bf16));
      });
}

TEST_P(Conformance, draws_the_same_weights) {
  const RandomBlock block{.at = {.seed = 2, .layer = 8}, .row = 3, .column = 5, .columns = 100};
  for (const Dtype dtype : floats)
    same_however_it_lies([&](Desk& desk) {
      const Tensor out = desk.blank({13, 39}, dtype);
      desk.kernels().random_normal(out, 0.5F, 0.02F, block);
      desk.result("normal", out, exactly);
      desk.kernels().random_uniform(out, -0.25F, 3, block);
      desk.result("uniform", out, exactly);
    });
}

}  // namespace
}  // namespace weft::conformance
