// Updates: both ways of decay, all types of gradient and copy, moments of fewer bits, signs.
#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

Tensor positive(Desk& desk, std::int64_t n) {
  const Tensor out = desk.normal({n});
  desk.kernels().multiply(out, out, out);
  return out;
}

TEST_P(Conformance, updates_with_adam) {
  for (const std::int64_t n : {0, 1, 15, 64, 5003})
    for (const Dtype grad : floats)
      for (const Dtype copy : floats)
        for (const bool decoupled : {false, true})
          same([&](Desk& desk) {
            AdamState state{desk.normal({n}), desk.normal({n}, Dtype::f32, 0.1), positive(desk, n), {}};
            if (copy != Dtype::f32) state.copy = desk.blank({n}, copy);
            const AdamArgs how{.rate = 0.01F,
                               .decay = 0.1F,
                               .correction1 = 0.1F,
                               .correction2 = 0.001F,
                               .grad_scale = 0.5F,
                               .decoupled = decoupled};
            desk.kernels().adam(state, desk.normal({n}, grad), how);
            desk.result("master", state.master, close(Dtype::f32, 4));
            desk.result("m", state.m, close(Dtype::f32));
            desk.result("v", state.v, close(Dtype::f32));
            if (state.copy) desk.result("copy", state.copy, close(copy, 4));
          });
}

TEST_P(Conformance, updates_with_momentum) {
  for (const std::int64_t n : {0, 1, 64, 999})
    for (const bool remembers : {false, true})
      same([&](Desk& desk) {
        const SgdState state{desk.normal({n}), remembers ? desk.normal({n}) : Tensor(),
                             desk.blank({n}, Dtype::bf16)};
        const SgdArgs how{.rate = 0.1F, .momentum = remembers ? 0.9F : 0, .decay = 0.01F, .grad_scale = 2};
        desk.kernels().sgd(state, desk.normal({n}), how);
        desk.result("master", state.master, close(Dtype::f32, 4));
        if (remembers) desk.result("momentum", state.momentum, close(Dtype::f32, 4));
        desk.result("copy", state.copy, close(Dtype::bf16, 4));
      });
}

/// One step up or down: the last bits of two right answers are no reason for the same chance.
Tolerance one_step(Dtype dtype) {
  return dtype == Dtype::f32      ? close(dtype)
         : dtype == Dtype::f8e5m2 ? Tolerance{0.26, 0x1p-16}
                                  : Tolerance{2.1 * rounding(dtype), 0x1p-24};
}

TEST_P(Conformance, updates_with_moments_of_fewer_bits) {
  for (const std::int64_t n : {0, 1, 15, 5003})
    for (const Dtype m : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8e5m2})
      for (const Dtype v : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8e5m2})
        same([&](Desk& desk) {
          AdamState state{desk.normal({n}), empty(desk.device(), {n}, m), empty(desk.device(), {n}, v), {}};
          desk.kernels().copy(state.m, desk.normal({n}, Dtype::f32, 0.1 * double(moment_scale(m))));
          desk.kernels().copy(state.v, positive(desk, n));
          const AdamArgs how{.rate = 0.01F, .beta2 = 0.95F, .decay = 0.1F, .dice = 77};
          desk.kernels().adam(state, desk.normal({n}), how);
          desk.result("master", state.master, close(Dtype::f32, 8));
          const Tensor read_m = desk.blank({n}), read_v = desk.blank({n});
          desk.kernels().copy(read_m, state.m);
          desk.kernels().copy(read_v, state.v);
          desk.result("m", read_m, one_step(m));
          desk.result("v", read_v, one_step(v));
        });
}

TEST_P(Conformance, updates_with_the_sign_of_momentum) {
  for (const std::int64_t n : {0, 1, 15, 5003})
    for (const Dtype grad : floats)
      same([&](Desk& desk) {
        const SgdState state{desk.normal({n}), desk.normal({n}), desk.blank({n}, Dtype::bf16)};
        desk.kernels().lion(state, desk.normal({n}, grad), {.rate = 0.1F, .decay = 0.01F, .grad_scale = 2});
        desk.result("master", state.master, close(Dtype::f32, 4));
        desk.result("momentum", state.momentum, close(Dtype::f32, 4));
        desk.result("copy", state.copy, close(Dtype::bf16, 4));
      });
}

TEST_P(Conformance, finds_directions_and_goes_there) {
  for (const std::int64_t n : {0, 1, 15, 5003})
    for (const bool inside : {false, true})
      for (const bool decoupled : {false, true})
        same([&](Desk& desk) {
          const AdamState state{desk.normal({n}), desk.normal({n}, Dtype::f32, 0.1), positive(desk, n), {}};
          const Tensor grad = desk.normal({n});
          const AdamArgs how{.epsilon = 0.01F,
                             .decay = 0.1F,
                             .correction1 = 0.5F,
                             .correction2 = 0.3F,
                             .grad_scale = 0.5F,
                             .decoupled = decoupled,
                             .epsilon_inside = inside};
          desk.kernels().adam_direction(state, grad, how);
          const Tensor copy = desk.blank({n}, Dtype::bf16);
          desk.result("direction", grad, close(Dtype::f32, 16, 8));
          const Tensor by = inside ? desk.holding({1}, Dtype::f32, {0.375}) : Tensor();
          desk.kernels().descend(state.master, copy, grad, {.rate = 0.25F, .keep = 0.5F, .by = by});
          desk.kernels().root(state.v, state.v, 0.125F);
          desk.result("m", state.m, close(Dtype::f32, 4));
          desk.result("root", state.v, close(Dtype::f32, 4));
          desk.result("master", state.master, close(Dtype::f32, 16, 8));
          desk.result("copy", copy, close(Dtype::bf16, 4));
        });
}

TEST_P(Conformance, takes_signs_and_adds_them_again) {
  for (const std::int64_t n : {0, 8, 24, 40000})
    same([&](Desk& desk) {
      const Tensor x = desk.normal({n}), out = desk.normal({n}), bits = desk.blank({n / 8}, Dtype::u8);
      desk.kernels().take_signs(bits, x, desk.holding({1}, Dtype::f32, {0.75}));
      desk.kernels().add_signs(out, bits, desk.holding({1}, Dtype::f32, {1.5}), 3);
      desk.result("bits", bits, exactly);
      desk.result("rest", x, close(Dtype::f32));
      desk.result("out", out, close(Dtype::f32));
    });
}

}  // namespace
}  // namespace weft::conformance
