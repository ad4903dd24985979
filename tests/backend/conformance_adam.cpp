// Updates: both ways of decay, all types of gradient and copy, several steps.
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

}  // namespace
}  // namespace weft::conformance
