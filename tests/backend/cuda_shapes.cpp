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
  std::int64_t dv = 0;    // of values, d where it is 0
  bool in_parts = false;  // results are f32, as those of parts are that will be merged
  float scale = 0.15F;
  float cap = 0;
  std::int64_t value() const { return dv > 0 ? dv : d; }
};

/// All that may be asked of who is seen, in heads of d and dv.
Case everything(std::int64_t d, std::int64_t dv) {
  return {.name = text("everything in heads of ", d, " and ", dv),
          .sq = 70,
          .sk = 100,
          .b = 2,
          .r = 2,
          .d = d,
          .diagonal = 30,
          .window = 60,
          .segments = true,
          .bias = true,
          .dropout = 0.2F,
          .dv = dv};
}

/// Caps that some scores reach and others do not, in heads of either width that has them.
std::vector<Case> with_caps() {
  Case all = everything(128, 128);
  all.bias = false;
  all.cap = 1;
  return {
      {.name = "a cap", .sq = 150, .sk = 150, .cap = 0.8F},
      {.name = "a cap of wide heads", .sq = 40, .sk = 90, .d = 256, .diagonal = 50, .window = 70, .cap = 2},
      {.name = "a cap of latent heads", .sq = 40, .sk = 70, .d = 192, .diagonal = 30, .dv = 128, .cap = 2},
      all};
}

/// A tile is 64 queries or keys, of wide heads fewer: three of them have a first, a middle and a last one.
std::vector<Case> tiled() {
  std::vector<Case> out{
      {.name = "three tiles", .sq = 150, .sk = 150},
      {.name = "wide heads", .sq = 70, .sk = 140, .d = 128, .diagonal = 70},
      {.name = "shared keys", .sq = 80, .sk = 80, .b = 2, .g = 2, .r = 2},
      {.name = "window", .sq = 200, .sk = 200, .window = 70},
      {.name = "a window beyond all", .sq = 70, .sk = 90, .window = std::int64_t{1} << 40},
      {.name = "no mask", .sq = 70, .sk = 90, .mask = Mask::none},
      {.name = "some see nothing", .sq = 100, .sk = 70, .diagonal = -30},
      {.name = "wider heads", .sq = 70, .sk = 90, .d = 256, .diagonal = 20, .window = 70},
      {.name = "in parts", .sq = 70, .sk = 90, .in_parts = true},
      {.name = "added by distance",
       .sq = 150,
       .sk = 200,
       .b = 2,
       .g = 2,
       .r = 2,
       .mask = Mask::none,
       .bias = true},
      {.name = "dropped", .sq = 150, .sk = 150, .dropout = 0.3F},
      {.name = "dropped in wider heads", .sq = 40, .sk = 90, .d = 256, .diagonal = 50, .dropout = 0.3F},
      {.name = "dropped in wide heads", .sq = 70, .sk = 140, .d = 128, .diagonal = 70, .dropout = 0.3F},
      {.name = "dropped in latent heads",
       .sq = 40,
       .sk = 70,
       .d = 192,
       .diagonal = 30,
       .dropout = 0.3F,
       .dv = 128},
      {.name = "dropped of heads that share keys",
       .sq = 70,
       .sk = 90,
       .b = 2,
       .r = 3,
       .window = 50,
       .dropout = 0.3F},
      {.name = "dropped from an odd key on", .sq = 70, .sk = 70, .r = 2, .dropout = 0.3F},
      {.name = "dropped in documents", .sq = 70, .sk = 70, .segments = true, .dropout = 0.3F},
      {.name = "the least is the most", .sq = 70, .sk = 70, .scale = -0.15F},
      {.name = "two blocks of wide heads", .sq = 200, .sk = 200, .d = 128},
      {.name = "latent heads", .sq = 70, .sk = 90, .d = 192, .diagonal = 20, .dv = 128},
      {.name = "narrower than a tile", .sq = 70, .sk = 90, .b = 2, .g = 2, .d = 40},
      {.name = "between two widths", .sq = 70, .sk = 90, .b = 2, .g = 2, .d = 96},
      {.name = "values narrower than keys", .sq = 70, .sk = 70, .b = 2, .d = 96, .dv = 56},
      {.name = "wider than most", .sq = 40, .sk = 90, .b = 2, .d = 160, .diagonal = 50},
      everything(64, 64),
      everything(128, 128),
      everything(192, 128),
      everything(256, 256),
  };
  for (const Case& c : with_caps()) out.push_back(c);
  return out;
}

AttentionOperands operands(Desk& desk, const Case& c, Dtype dtype) {
  AttentionOperands out = attention_operands(desk, c, dtype, c.scale);
  out.how.cap = c.cap;
  return out;
}

/// Half types round probabilities and slopes too, which the oracle does not.
Tolerance within(const Case& c, Dtype dtype, std::int64_t sums) {
  const double scale = (c.dropout > 0 ? 2 : 1) * double(sums);
  return {8 * rounding(dtype) + 1e-5, scale * (8 * rounding(dtype) + 2e-6 * double(8 + c.sk) / 8)};
}

AttentionOut attended(Desk& desk, const Case& c, const AttentionOperands& o, Dtype dtype) {
  const AttentionOut out{desk.blank({c.sq, c.b, c.g, c.r, c.value()}, c.in_parts ? Dtype::f32 : dtype),
                         desk.blank({c.b, c.g * c.r, c.sq}), desk.blank({c.b, c.g * c.r, c.sq})};
  desk.kernels().attention(out, o.in, o.how);
  return out;
}

void forward(Desk& desk, const Case& c, Dtype dtype) {
  const AttentionOut out = attended(desk, c, operands(desk, c, dtype), dtype);
  desk.result("o", out.o, within(c, dtype, 1));
  desk.result("lse", out.lse, {1e-5, 2e-5});
  desk.result("greatest", out.greatest, {1e-5, 2e-5});
}

void backward(Desk& desk, const Case& c, Dtype dtype) {
  const AttentionOperands o = operands(desk, c, dtype);
  const AttentionOut out = attended(desk, c, o, dtype);
  const Tensor dout = desk.normal({c.sq, c.b, c.g, c.r, c.value()}, dtype);
  AttentionGrads grads{desk.normal(o.in.q.shape(), dtype), desk.normal(o.in.k.shape(), dtype),
                       desk.normal(o.in.v.shape(), dtype)};
  if (c.bias) grads.dbias = desk.normal(o.how.bias.shape());
  desk.kernels().attention_backward(grads, dout, out, o.in, o.how);
  const Tolerance wide = within(c, dtype, c.sq * c.r / 16 + 8);
  desk.result("dq", grads.dq, wide);
  desk.result("dk", grads.dk, wide);
  desk.result("dv", grads.dv, wide);
  const double pairs = double(c.b * std::min(c.sq, c.sk)) / 16 + 1;  // of a distance
  if (c.bias) desk.result("dbias", grads.dbias, {wide.relative, wide.absolute * pairs});
}

template <class Same>
void expect_attention(const std::vector<Case>& cases, const Same& same) {
  for (const Case& c : cases)
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      SCOPED_TRACE(c.name + " " + name(dtype));
      same([&](Desk& desk) { forward(desk, c, dtype); });
    }
}

template <class Same>
void expect_derivatives(const std::vector<Case>& cases, const Same& same) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    same([&](Desk& desk) { backward(desk, c, Dtype::bf16); });
  }
  same([&](Desk& desk) { backward(desk, {.name = "f16", .sq = 70, .sk = 70}, Dtype::f16); });
}

TEST_P(Conformance, attends_by_tiles) {
  expect_attention(tiled(), [&](const Act& act) { same(act); });
}
TEST_P(Conformance, gives_derivatives_by_tiles) {
  expect_derivatives(tiled(), [&](const Act& act) { same(act); });
}

/// A block has two tiles of its own, or one.
std::vector<Case> of_warpgroups() {
  std::vector<Case> out;
  for (const Case& c : tiled())
    if (std::max(c.d, c.value()) <= 128) out.push_back(c);
  out.push_back(
      {.name = "groups that see other keys", .sq = 280, .sk = 330, .g = 2, .diagonal = 50, .window = 100});
  return out;
}

TEST_P(Warpgroups, attend) {
  expect_attention(of_warpgroups(), [&](const Act& act) { same(act); });
}
TEST_P(Warpgroups, give_derivatives) {
  expect_derivatives(of_warpgroups(), [&](const Act& act) { same(act); });
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
