// Attention: every mask, head grouping, length, bias and dropout; forward, backward and merged parts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/backend/attention_operands.h"
#include "weft/tensor/host.h"

namespace weft::conformance {
namespace {

struct Case {
  std::string name;
  std::int64_t sq = 12, sk = 12, b = 2, g = 2, r = 1, d = 16;
  Mask mask = Mask::causal;
  std::int64_t diagonal = 0, window = 0;
  bool segments = false, bias = false;
  float dropout = 0;
  std::int64_t d_value = 0;  // 0: as wide as a key
  float cap = 0;
  std::int64_t value() const { return d_value > 0 ? d_value : d; }
};

std::vector<Case> with_caps() {
  return {
      {.name = "a cap", .sq = 37, .sk = 37, .r = 2, .cap = 0.7F},
      {.name = "a high cap across blocks", .sq = 150, .sk = 150, .b = 1, .d = 64, .cap = 30},
      {.name = "a cap of large heads", .sq = 70, .sk = 70, .b = 1, .g = 1, .d = 256, .window = 40, .cap = 2},
      {.name = "a cap and everything",
       .sq = 40,
       .sk = 52,
       .r = 2,
       .d = 128,
       .diagonal = 12,
       .window = 30,
       .segments = true,
       .dropout = 0.2F,
       .cap = 1},
  };
}

std::vector<Case> cases() {
  std::vector<Case> out{
      {.name = "causal"},
      {.name = "open", .mask = Mask::none},
      {.name = "grouped heads", .r = 3},
      {.name = "one group", .g = 1, .r = 4, .d = 24},
      {.name = "small heads", .d = 8},
      {.name = "odd heads", .d = 20},
      {.name = "large heads", .b = 1, .g = 1, .d = 256},
      {.name = "one query", .sq = 1, .sk = 37, .diagonal = 36},
      {.name = "more keys", .sq = 9, .sk = 70, .diagonal = 61},
      {.name = "more queries, some see nothing", .sq = 33, .sk = 20, .diagonal = -13},
      {.name = "across blocks", .sq = 150, .sk = 150, .b = 1, .d = 32},
      {.name = "across blocks, open", .sq = 70, .sk = 141, .b = 1, .d = 64, .mask = Mask::none},
      {.name = "window", .sq = 90, .sk = 90, .b = 1, .window = 17},
      {.name = "window of one", .window = 1},
      {.name = "documents", .sq = 40, .sk = 40, .segments = true},
      {.name = "padding", .sq = 40, .sk = 40, .mask = Mask::none, .segments = true},
      {.name = "segments across", .sq = 7, .sk = 33, .r = 2, .mask = Mask::none, .segments = true},
      {.name = "bias", .mask = Mask::none, .bias = true},
      {.name = "bias across blocks", .sq = 210, .sk = 130, .g = 1, .d = 32, .mask = Mask::none, .bias = true},
      {.name = "bias and padding", .sq = 50, .sk = 70, .mask = Mask::none, .segments = true, .bias = true},
      {.name = "causal bias, grouped", .sq = 34, .sk = 34, .r = 2, .bias = true},
      {.name = "dropout", .sq = 35, .sk = 35, .dropout = 0.3F},
      {.name = "everything",
       .sq = 40,
       .sk = 52,
       .r = 2,
       .diagonal = 12,
       .window = 30,
       .segments = true,
       .bias = true,
       .dropout = 0.2F},
      {.name = "no keys", .sk = 0},
      {.name = "no queries", .sq = 0},
      {.name = "narrow values", .sq = 40, .sk = 40, .d = 24, .d_value = 16},
      {.name = "wide values", .r = 2, .d = 20, .d_value = 33},
      {.name = "narrow values across blocks", .sq = 150, .sk = 150, .b = 1, .d = 192, .d_value = 128},
      {.name = "narrow values, shared keys", .sq = 64, .sk = 64, .r = 2, .d = 48, .d_value = 40},
      {.name = "wide values and everything",
       .sq = 40,
       .sk = 52,
       .r = 2,
       .d = 8,
       .diagonal = 12,
       .window = 30,
       .segments = true,
       .bias = true,
       .dropout = 0.2F,
       .d_value = 36},
  };
  for (const Case& c : with_caps()) out.push_back(c);
  return out;
}

AttentionOperands operands(Desk& desk, const Case& c, Dtype dtype) {
  AttentionOperands o = attention_operands(desk, c, dtype, 0.3F);
  o.how.cap = c.cap;
  return o;
}

AttentionOut blank_out(Desk& desk, const Case& c, Dtype dtype) {
  return {desk.blank({c.sq, c.b, c.g, c.r, c.value()}, dtype), desk.blank({c.b, c.g * c.r, c.sq}),
          desk.blank({c.b, c.g * c.r, c.sq})};
}

/// Half types round probabilities too, which the oracle does not.
Tolerance within(const Case& c, Dtype dtype) {
  const double scale = c.dropout > 0 ? 2 : 1;
  return {8 * rounding(dtype) + 1e-5, scale * (8 * rounding(dtype) + 2e-6 * double(8 + c.sk) / 8)};
}

void forward(Desk& desk, const Case& c, Dtype dtype) {
  const AttentionOperands o = operands(desk, c, dtype);
  const AttentionOut out = blank_out(desk, c, dtype);
  desk.kernels().attention(out, o.in, o.how);
  desk.result("o", out.o, within(c, dtype));
  desk.result("lse", out.lse, {1e-5, 1e-5});
  desk.result("greatest", out.greatest, {1e-5, 1e-5});
}

void backward(Desk& desk, const Case& c, Dtype dtype, bool accumulate) {
  const AttentionOperands o = operands(desk, c, dtype);
  const AttentionOut out = blank_out(desk, c, dtype);
  desk.kernels().attention(out, o.in, o.how);
  const Tensor dout = desk.normal({c.sq, c.b, c.g, c.r, c.value()}, dtype);
  // What is added to is f32, as gradients of ring attention are.
  const Dtype kept = accumulate ? Dtype::f32 : dtype;
  AttentionGrads grads{desk.normal(o.in.q.shape(), kept), desk.normal(o.in.k.shape(), kept),
                       desk.normal(o.in.v.shape(), kept)};
  grads.accumulate = accumulate;
  if (c.bias) grads.dbias = desk.normal(o.how.bias.shape());
  desk.kernels().attention_backward(grads, dout, out, o.in, o.how);
  const Tolerance near = within(c, dtype);
  const double more = double(c.sq * c.r) / 16 + 8;
  const Tolerance wide{near.relative, near.absolute * more};
  desk.result("dq", grads.dq, wide);
  desk.result("dk", grads.dk, wide);
  desk.result("dv", grads.dv, wide);
  // A sum over the batch, and over as many pairs as a distance has.
  const double pairs = double(c.b * std::min(c.sq, c.sk)) / 16 + 1;
  if (c.bias) desk.result("dbias", grads.dbias, {wide.relative, wide.absolute * pairs});
}

TEST_P(Conformance, attends) {
  for (const Case& c : cases())
    for (const Dtype dtype : floats) {
      SCOPED_TRACE(c.name + " " + name(dtype));
      same([&](Desk& desk) { forward(desk, c, dtype); });
    }
}

TEST_P(Conformance, gives_derivatives_of_attention) {
  for (const Case& c : cases())
    for (const Dtype dtype : floats) {
      SCOPED_TRACE(c.name + " " + name(dtype));
      same([&](Desk& desk) { backward(desk, c, dtype, false); });
    }
}

TEST_P(Conformance, adds_derivatives_of_attention_to_f32) {
  bool half = false;  // in turn: what is added to is f32 in either
  for (const Case& c : cases()) {
    const Dtype dtype = half ? Dtype::bf16 : Dtype::f32;
    half = !half;
    SCOPED_TRACE(c.name + " " + name(dtype));
    same([&](Desk& desk) { backward(desk, c, dtype, true); });
  }
}

TEST_P(Conformance, attends_in_views_of_one_fused_tensor) {
  for (const Dtype dtype : floats)
    same([&](Desk& desk) {
      // [s, b, g, (r + 2) d]: the queries of a group, then its key and its value
      const Tensor qkv = desk.normal({20, 2, 3, 4 * 16}, dtype);
      const Attended in{qkv.slice(3, 0, 32).split(3, {2, 16}), qkv.slice(3, 32, 16), qkv.slice(3, 48, 16)};
      const AttentionOut out{desk.blank({20, 2, 3, 2, 16}, dtype), desk.blank({2, 6, 20})};
      const AttentionArgs how{.scale = 0.25F, .mask = Mask::causal};
      desk.kernels().attention(out, in, how);
      desk.result("o", out.o, within({.name = ""}, dtype));
      const Tensor grad = desk.blank({20, 2, 3, 4 * 16}, dtype);
      const AttentionGrads grads{grad.slice(3, 0, 32).split(3, {2, 16}), grad.slice(3, 32, 16),
                                 grad.slice(3, 48, 16)};
      desk.kernels().attention_backward(grads, desk.normal({20, 2, 3, 2, 16}, dtype), out, in, how);
      const Tolerance near = within({.name = "", .sk = 20}, dtype);
      desk.result("gradient", grad, {near.relative, 10 * near.absolute});
    });
}

// One row of zeros and one score a head in memory, wherever they are read.
TEST_P(Conformance, merges_what_no_key_gives) {
  for (const Dtype dtype : floats)
    for (const std::int64_t diagonal : {0, -6})
      same([&](Desk& desk) {
        const Case c{.name = "", .r = 2};
        const AttentionOut out = blank_out(desk, c, dtype);
        desk.kernels().attention(out, operands(desk, c, dtype).in,
                                 {.scale = 0.3F, .mask = Mask::causal, .diagonal = diagonal});
        Tensor zeros = desk.holding({c.d}, dtype, std::vector<double>(std::size_t(c.d)));
        for (const std::int64_t times : {c.r, c.g, c.b, c.sq}) zeros = zeros.row_of(times, 0);
        const Tensor scores = desk.normal({c.g * c.r}).row_of(c.b, 0).row_of(c.sq, 0).permute({1, 2, 0});
        desk.kernels().merge_attention(out, {zeros, scores});
        desk.result("o", out.o, within(c, dtype));
        desk.result("lse", out.lse, {1e-5, 1e-5});
      });
}

// Scores that are no numbers, and such as grow beyond all numbers, where they are seen and where not.
TEST_P(Conformance, tells_the_greatest_scores_and_of_scores_that_are_none) {
  for (const Dtype dtype : floats)
    for (const bool causal : {false, true})
      same([&](Desk& desk) {
        const Case c{.name = "", .sq = 70, .sk = 70, .b = 1, .g = 1, .d = 64};
        std::vector<double> keys(std::size_t(c.sk * c.d), 0.5);
        keys[std::size_t(40 * c.d)] = std::numeric_limits<double>::quiet_NaN();
        const Attended in{desk.normal({c.sq, 1, 1, 1, c.d}, dtype),
                          desk.holding({c.sk, 1, 1, c.d}, dtype, keys),
                          desk.normal({c.sk, 1, 1, c.d}, dtype)};
        const AttentionOut out = blank_out(desk, c, dtype);
        desk.kernels().attention(out, in, {.scale = 0.3F, .mask = causal ? Mask::causal : Mask::none});
        // An infinite number is as near to every other as is allowed.
        std::vector<double> told = numbers(out.greatest);
        for (double& x : told) x = std::isnan(x) ? -1000 : std::isinf(x) ? 1000 : x;
        desk.result("greatest", desk.holding({c.sq}, Dtype::f32, told), {1e-5, 1e-5});
      });
}

TEST_P(Conformance, raises_what_is_greatest_of_all_rows) {
  for (const std::int64_t s : {0, 1, 37, 700})
    same_however_it_lies([&](Desk& desk) {
      const Tensor rows = desk.normal({3, 5, s});
      const Tensor greatest =
          desk.holding({5}, Dtype::f32, {-std::numeric_limits<double>::infinity(), -9, 0, 9, 0.5});
      desk.kernels().raise_greatest(greatest, rows);
      desk.result("greatest", greatest, {});
    });
}

TEST_P(Conformance, gives_derivatives_of_sinks) {
  for (const std::int64_t heads : {1, 7, 40})
    same_however_it_lies([&](Desk& desk) {
      const Tensor terms = desk.normal({6, 5, heads}), lse = desk.normal({6, 5, heads}, Dtype::f32, 2);
      desk.kernels().sink_terms(terms, lse, desk.normal({heads}, Dtype::f32, 2));
      desk.result("terms", terms, close(Dtype::f32, 16));
    });
}

TEST_P(Conformance, merges_parts_of_attention) {
  for (const Dtype dtype : floats)
    for (const std::int64_t diagonal : {0, -6})
      same([&](Desk& desk) {
        const Case c{.name = "", .r = 2};
        AttentionOperands o = operands(desk, c, dtype);
        const AttentionOut into = blank_out(desk, c, Dtype::f32);
        const AttentionOut part = blank_out(desk, c, dtype);
        desk.kernels().attention(into, o.in, {.scale = 0.3F, .mask = Mask::causal, .diagonal = -3});
        desk.kernels().attention(part, o.in, {.scale = 0.3F, .mask = Mask::causal, .diagonal = diagonal});
        desk.kernels().merge_attention(into, part);
        desk.result("o", into.o, within(c, dtype));
        desk.result("lse", into.lse, {1e-5, 1e-5});
      });
}

}  // namespace
}  // namespace weft::conformance
