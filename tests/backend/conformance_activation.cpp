// Activations: all kinds and types, with and without bias, where they are steep and where they are flat.
#include "tests/backend/conformance.h"
#include "weft/tensor/kinds.h"

namespace weft::conformance {
namespace {

void each_kind(const std::function<void(Activation)>& act) {
  const auto names = words(Activation{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    SCOPED_TRACE(std::string(names[i]));
    act(static_cast<Activation>(i));
  }
}

TEST_P(Conformance, evaluates_activations_and_their_derivatives) {
  for (const Dtype dtype : floats)
    each_kind([&](Activation kind) {
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal({4, 3, 43}, dtype, 2);
        const Tensor bias = desk.normal({43}, dtype);
        const Tensor y = desk.blank({4, 3, 43}, dtype);
        desk.kernels().activation(y, x, bias, kind);
        desk.result("y", y, close(dtype, 16, 4));
        desk.kernels().activation(y, x, {}, kind);
        desk.result("y without bias", y, close(dtype, 16, 4));
        const Tensor dy = desk.normal({4, 3, 43}, dtype);
        const Tensor dx = desk.blank({4, 3, 43}, dtype);
        desk.kernels().activation_backward(dx, dy, x, bias, kind);
        desk.result("dx", dx, close(dtype, 16, 4));
        desk.kernels().activation_backward(dy, dy, x, {}, kind);
        desk.result("dx in place of dy", dy, close(dtype, 16, 4));
      });
    });
}

TEST_P(Conformance, evaluates_gated_activations_and_their_derivatives) {
  for (const Dtype dtype : floats)
    each_kind([&](Activation kind) {
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal({11, 2 * 37}, dtype, 2);
        const Tensor bias = desk.normal({2 * 37}, dtype);
        const Tensor y = desk.blank({11, 37}, dtype);
        const Tensor dx = desk.blank({11, 2 * 37}, dtype);
        const Tensor dy = desk.normal({11, 37}, dtype);
        desk.kernels().gated(y, x, bias, {kind});
        desk.result("y", y, close(dtype, 16, 8));
        desk.kernels().gated_backward(dx, dy, x, bias, {kind});
        desk.result("dx", dx, close(dtype, 16, 8));
        desk.kernels().gated(y, x, {}, {kind});
        desk.result("y without bias", y, close(dtype, 16, 8));
        desk.kernels().gated_backward(dx, dy, x, {}, {kind});
        desk.result("dx without bias", dx, close(dtype, 16, 8));
      });
    });
}

/// Of what is beyond a gate's limit, on either side, and what is no number.
TEST_P(Conformance, keeps_gates_within_their_limit) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Dtype dtype : floats)
    each_kind([&](Activation kind) {
      same_however_it_lies([&](Desk& desk) {
        const Gate gate{.f = kind, .limit = 0.75F, .offset = 1};
        const Tensor x = desk.normal({11, 2 * 37}, dtype, 2), bias = desk.normal({2 * 37}, dtype);
        const Tensor y = desk.blank({11, 37}, dtype), dx = desk.blank({11, 2 * 37}, dtype);
        desk.kernels().gated(y, x, bias, gate);
        desk.result("y", y, close(dtype, 16, 8));
        desk.kernels().gated_backward(dx, desk.normal({11, 37}, dtype), x, {}, gate);
        desk.result("dx", dx, close(dtype, 16, 8));
      });
      same([&](Desk& desk) {
        const Gate gate{.f = kind, .limit = 2};
        const Tensor x = desk.holding({8}, dtype, {nan, 1, 3, -3, 1, nan, 1, -1});
        const Tensor y = desk.blank({4}, dtype), dx = desk.blank({8}, dtype);
        desk.kernels().gated(y, x, {}, gate);
        desk.result("y of NaN", y, close(dtype, 16, 8));
        if (kind == Activation::squared_relu) return;  // whose slope there some call none and some zero
        desk.kernels().gated_backward(dx, desk.holding({4}, dtype, {1, 2, 3, 4}), x, {}, gate);
        desk.result("dx of NaN", dx, close(dtype, 16, 8));
      });
    });
}

TEST_P(Conformance, evaluates_activations_far_out) {
  each_kind([&](Activation kind) {
    same([&](Desk& desk) {
      const Tensor x = desk.holding({8}, Dtype::f32, {-1000, -100, -20, -1e-6, 1e-6, 20, 100, 1000});
      const Tensor dy = desk.holding({8}, Dtype::f32, std::vector<double>(8, 1));
      const Tensor out = desk.blank({8});
      desk.kernels().activation(out, x, {}, kind);
      desk.result("y", out, close(Dtype::f32, 16));
      desk.kernels().activation_backward(out, dy, x, {}, kind);
      desk.result("dx", out, close(Dtype::f32, 16));
    });
  });
}

}  // namespace
}  // namespace weft::conformance
