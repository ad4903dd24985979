// Shapes at which every loop of the GPU's own kernels goes round twice with two warps and two blocks at
// least, where the suite's are too small or take another kernel: attention by tiles, and by warps with many
// keys.
#include <algorithm>

#include "tests/backend/attention_operands.h"

namespace weft::conformance {
namespace {

struct Case {
  std::string name;
  std::int64_t sq, sk, b = 1, g = 1, r = 1, d = 64;
  Mask mask = Mask::causal;
  std::int64_t diagonal = 0, window = 0;
  bool segments = false, bias = false;
  float dropout = 0;
  std::int64_t value() const { return d; }
};

/// A tile is 64 queries or keys: three of them have a first, a middle and a last one.
std::vector<Case> tiled() {
  return {
      {.name = "three tiles", .sq = 150, .sk = 150},
      {.name = "wide heads", .sq = 70, .sk = 140, .d = 128, .diagonal = 70},
      {.name = "shared keys", .sq = 80, .sk = 80, .b = 2, .g = 2, .r = 2},
      {.name = "window", .sq = 200, .sk = 200, .window = 70},
      {.name = "no mask", .sq = 70, .sk = 90, .mask = Mask::none},
      {.name = "some see nothing", .sq = 100, .sk = 70, .diagonal = -30},
      {.name = "everything",
       .sq = 70,
       .sk = 100,
       .b = 2,
       .r = 2,
       .diagonal = 30,
       .window = 60,
       .segments = true,
       .bias = true,
       .dropout = 0.2F},
  };
}

AttentionOperands operands(Desk& desk, const Case& c, Dtype dtype) {
  return attention_operands(desk, c, dtype, 0.15F);
}

/// Half types round probabilities and slopes too, which the oracle does not.
Tolerance within(const Case& c, Dtype dtype, std::int64_t sums) {
  const double scale = (c.dropout > 0 ? 2 : 1) * double(sums);
  return {8 * rounding(dtype) + 1e-5, scale * (8 * rounding(dtype) + 2e-6 * double(8 + c.sk) / 8)};
}

AttentionOut attended(Desk& desk, const Case& c, const AttentionOperands& o, Dtype dtype) {
  const AttentionOut out{desk.blank({c.sq, c.b, c.g, c.r, c.d}, dtype), desk.blank({c.b, c.g * c.r, c.sq})};
  desk.kernels().attention(out, o.in, o.how);
  return out;
}

void forward(Desk& desk, const Case& c, Dtype dtype) {
  const AttentionOut out = attended(desk, c, operands(desk, c, dtype), dtype);
  desk.result("o", out.o, within(c, dtype, 1));
  desk.result("lse", out.lse, {1e-5, 2e-5});
}

void backward(Desk& desk, const Case& c, Dtype dtype) {
  const AttentionOperands o = operands(desk, c, dtype);
  const AttentionOut out = attended(desk, c, o, dtype);
  const Tensor dout = desk.normal({c.sq, c.b, c.g, c.r, c.d}, dtype);
  AttentionGrads grads{desk.normal(o.in.q.shape(), dtype), desk.normal(o.in.k.shape(), dtype),
                       desk.normal(o.in.v.shape(), dtype)};
  if (c.bias) grads.dbias = desk.normal(o.how.bias.shape());
  desk.kernels().attention_backward(grads, dout, out, o.in, o.how);
  const Tolerance wide = within(c, dtype, c.sq * c.r / 16 + 8);
  desk.result("dq", grads.dq, wide);
  desk.result("dk", grads.dk, wide);
  desk.result("dv", grads.dv, wide);
}

TEST_P(Conformance, attends_by_tiles) {
  for (const Case& c : tiled())
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      SCOPED_TRACE(c.name + " " + name(dtype));
      same([&](Desk& desk) { forward(desk, c, dtype); });
    }
}

TEST_P(Conformance, gives_derivatives_by_tiles) {
  for (const Case& c : tiled()) {
    SCOPED_TRACE(c.name);
    same([&](Desk& desk) { backward(desk, c, Dtype::bf16); });
  }
  same([&](Desk& desk) { backward(desk, {.name = "f16", .sq = 70, .sk = 70}, Dtype::f16); });
}

TEST_P(Conformance, softens_many_keys_of_a_query) {
  const Case c{.name = "", .sq = 11, .sk = 100, .g = 2, .d = 40, .mask = Mask::none, .segments = true};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    same([&](Desk& desk) { forward(desk, c, dtype); });
    same([&](Desk& desk) { backward(desk, c, dtype); });
  }
}

}  // namespace
}  // namespace weft::conformance
