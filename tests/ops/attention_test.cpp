// Attention against a whole matrix of probabilities, under every mask; derivatives against differences; parts
// that merge to the whole.
#include <cmath>

#include "tests/ops/fixture.h"
#include "tests/support/made.h"
#include "weft/ops/attention.h"

namespace weft {
namespace {

struct Case {
  std::string name;
  std::int64_t sq = 5, sk = 5, b = 2, g = 2, r = 1, d = 4;
  Mask mask = Mask::causal;
  std::int64_t diagonal = 0, window = 0;
  bool segments = false, bias = false, sinks = false;
  float dropout = 0;
  float cap = 0;
  std::int64_t chunk = 0;
};

std::vector<Case> cases() {
  return {{.name = "open", .sk = 7, .mask = Mask::none},
          {.name = "causal, grouped", .r = 3},
          {.name = "causal, longer keys", .sk = 8, .diagonal = 3},
          {.name = "some see nothing", .sq = 6, .sk = 4, .diagonal = -2},
          {.name = "window", .sq = 6, .sk = 6, .window = 2},
          {.name = "documents", .segments = true},
          {.name = "padding and bias", .sk = 6, .mask = Mask::none, .segments = true, .bias = true},
          {.name = "dropout", .r = 2, .dropout = 0.4F},
          {.name = "sinks", .r = 2, .sinks = true},
          {.name = "sinks, some see nothing", .sq = 6, .sk = 4, .diagonal = -2, .sinks = true},
          {.name = "a cap", .r = 2, .cap = 0.8F},
          {.name = "a cap, sinks and dropout", .sinks = true, .dropout = 0.3F, .cap = 3},
          {.name = "chunks", .sq = 6, .sk = 5, .r = 2, .diagonal = -1, .chunk = 3},
          {.name = "chunks of one", .diagonal = -1, .chunk = 1},
          {.name = "chunks that see both ways", .sk = 7, .mask = Mask::none, .chunk = 4},
          {.name = "chunks and everything",
           .sq = 8,
           .sk = 7,
           .r = 2,
           .diagonal = -1,
           .window = 3,
           .segments = true,
           .bias = true,
           .sinks = true,
           .dropout = 0.3F,
           .chunk = 4},
          {.name = "everything",
           .sq = 4,
           .sk = 7,
           .r = 2,
           .diagonal = 3,
           .window = 5,
           .segments = true,
           .bias = true,
           .sinks = true,
           .dropout = 0.3F}};
}

class AttentionOps : public Ops {
 protected:
  Attended operands(const Case& c) {
    return {random({c.sq, c.b, c.g, c.r, c.d}), random({c.sk, c.b, c.g, c.d}), random({c.sk, c.b, c.g, c.d})};
  }
  AttentionArgs args(const Case& c) {
    AttentionArgs how{.scale = 0.7F,
                      .cap = c.cap,
                      .mask = c.mask,
                      .diagonal = c.diagonal,
                      .window = c.window,
                      .chunk = c.chunk};
    const auto documents = [](std::int64_t b, std::int64_t s) {
      std::vector<double> out;
      for (std::int64_t i = 0; i < b * s; ++i)
        out.push_back(i % s < 3 ? 0 : i % s == s - 1 ? -1 : double(1 + i / s));
      return out;
    };
    if (c.segments) {
      how.query_segments = integers({c.b, c.sq}, documents(c.b, c.sq));
      how.key_segments = integers({c.b, c.sk}, documents(c.b, c.sk));
    }
    if (c.bias) how.bias = random({c.g * c.r, c.sq + c.sk + 1});
    how.bias0 = c.sk;
    if (c.sinks) how.sinks = random({c.g * c.r});
    how.dropout = c.dropout;
    how.at = {.seed = 3, .purpose = Purpose::dropout_attention, .step = 1, .layer = 2};
    if (c.dropout > 0) how.samples = holding({c.b}, {8, 2}, Dtype::i64);
    how.head0 = 1;
    how.query0 = 2;
    how.key0 = 3;
    return how;
  }
};

double element(const Tensor& tensor, std::initializer_list<std::int64_t> index) {
  Tensor at = tensor;
  for (const std::int64_t i : index) at = at.at(0, i);
  return number(at);
}

bool sees(const AttentionArgs& how, std::int64_t b, std::int64_t i, std::int64_t j) {
  if (how.mask == Mask::causal && j > i + how.diagonal) return false;
  if (how.window > 0 && j <= i + how.diagonal - how.window) return false;
  if (how.chunk > 0 && (how.query0 + i) / how.chunk != (how.key0 + j) / how.chunk) return false;
  if (!how.query_segments) return true;
  const double segment = element(how.query_segments, {b, i});
  return segment >= 0 && segment == element(how.key_segments, {b, j});
}

/// One query's probabilities before dropout, and the logarithm of their sum.
std::pair<std::vector<double>, double> probabilities(const Attended& in, const AttentionArgs& how,
                                                     std::array<std::int64_t, 4> at) {
  const auto [b, g, r, i] = at;
  std::vector<double> p;
  double sum = 0;
  for (std::int64_t j = 0; j < in.k.dim(0); ++j) {
    double score = 0;
    for (std::int64_t c = 0; c < in.q.dim(4); ++c)
      score += double(how.scale) * element(in.q, {i, b, g, r, c}) * element(in.k, {j, b, g, c});
    if (how.cap > 0) score = double(how.cap) * std::tanh(score / double(how.cap));
    if (how.bias) score += element(how.bias, {g * in.q.dim(3) + r, i - j + how.bias0});
    p.push_back(sees(how, b, i, j) ? std::exp(score) : 0);
    sum += p.back();
  }
  if (how.sinks) sum += std::exp(element(how.sinks, {g * in.q.dim(3) + r}));
  for (double& x : p) x /= sum > 0 ? sum : 1;
  return {p, std::log(sum)};
}

double kept(const AttentionArgs& how, std::int64_t b, std::int64_t head, std::int64_t i, std::int64_t j) {
  if (how.dropout == 0) return 1;
  Address at = how.at;
  at.sample = std::uint64_t(element(how.samples, {b}));
  const auto place = std::uint64_t(((how.head0 + head) << 40) + ((how.query0 + i) << 20) + how.key0 + j);
  return Draw(at).word(place) < share(how.dropout) ? 0 : 1 / (1 - double(how.dropout));
}

TEST_F(AttentionOps, give_what_the_whole_matrix_gives) {
  for (const Case& c : cases()) {
    const Attended in = operands(c);
    const AttentionArgs how = args(c);
    const AttentionOut out = ops::attention(in, how);
    for (std::int64_t b = 0; b < c.b; ++b)
      for (std::int64_t head = 0; head < c.g * c.r; ++head)
        for (std::int64_t i = 0; i < c.sq; ++i) {
          const auto [p, lse] = probabilities(in, how, {b, head / c.r, head % c.r, i});
          EXPECT_TRUE(near(element(out.lse, {b, head, i}), lse, f32_near)) << c.name;
          std::vector<double> o(std::size_t(c.d));
          for (std::int64_t j = 0; j < c.sk; ++j)
            for (std::int64_t x = 0; x < c.d; ++x)
              o[std::size_t(x)] +=
                  p[std::size_t(j)] * kept(how, b, head, i, j) * element(in.v, {j, b, head / c.r, x});
          const Tensor found = out.o.at(0, i).at(0, b).at(0, head / c.r).at(0, head % c.r);
          EXPECT_EQ(difference(numbers(found), o, f32_near), "") << c.name;
        }
  }
}

TEST_F(AttentionOps, have_the_derivatives_that_differences_show) {
  for (const Case& c : cases()) {
    const Attended in = operands(c);
    const AttentionArgs how = args(c);
    const Tensor dout = random(in.q.shape());
    AttentionGrads grads{zeros(in.q.shape()), zeros(in.k.shape()), zeros(in.v.shape()),
                         c.bias ? zeros(how.bias.shape()) : Tensor()};
    if (c.sinks) grads.dsinks = zeros(how.sinks.shape());
    ops::attention_backward_into(grads, dout, ops::attention(in, how), in, how);
    const auto f = [&] { return probed(dout, ops::attention(in, how).o); };
    EXPECT_EQ(difference(numbers(grads.dq), slopes(in.q, f), slope_near), "") << c.name;
    EXPECT_EQ(difference(numbers(grads.dk), slopes(in.k, f), slope_near), "") << c.name;
    EXPECT_EQ(difference(numbers(grads.dv), slopes(in.v, f), slope_near), "") << c.name;
    if (c.bias) {
      EXPECT_EQ(difference(numbers(grads.dbias), slopes(how.bias, f), slope_near), "") << c.name;
    }
    if (c.sinks) {
      EXPECT_EQ(difference(numbers(grads.dsinks), slopes(how.sinks, f), slope_near), "") << c.name;
    }
  }
}

TEST_F(AttentionOps, of_a_query_that_sees_nothing_is_zero_and_gives_no_gradient) {
  const Case c{.name = "", .diagonal = -1};
  const Attended in = operands(c);
  const AttentionOut out = ops::attention(in, args(c));
  EXPECT_EQ(element(out.lse, {0, 0, 0}), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(numbers(out.o.at(0, 0)), std::vector<double>(16, 0));
  const AttentionGrads grads = testing::attention_backward(random(in.q.shape()), out, in, args(c));
  EXPECT_EQ(numbers(grads.dq.at(0, 0)), std::vector<double>(16, 0));
}

/// The keys [from, from + count), their mask moved along.
std::pair<Attended, AttentionArgs> part(const Attended& in, AttentionArgs how, std::int64_t from,
                                        std::int64_t count) {
  how.diagonal -= from;
  how.key0 += from;
  if (how.key_segments) how.key_segments = how.key_segments.slice(1, from, count);
  how.bias0 -= from;
  if (from == 0) how.sinks = {};  // one part takes them
  return {{in.q, in.k.slice(0, from, count), in.v.slice(0, from, count)}, how};
}

TEST_F(AttentionOps, of_parts_of_the_keys_merge_to_the_whole) {
  for (const Case& c : cases()) {
    const Attended in = operands(c);
    const AttentionArgs how = args(c);
    const AttentionOut whole = ops::attention(in, how);
    const auto [left, left_how] = part(in, how, 0, 2);
    const auto [right, right_how] = part(in, how, 2, c.sk - 2);
    const AttentionOut merged = ops::attention(left, left_how);
    ops::merge_attention(merged, ops::attention(right, right_how));
    EXPECT_EQ(difference(numbers(merged.o), numbers(whole.o), f32_near), "") << c.name;
    EXPECT_EQ(difference(numbers(merged.lse), numbers(whole.lse), f32_near), "") << c.name;
  }
}

TEST_F(AttentionOps, of_parts_of_the_keys_add_their_shares_of_the_gradients) {
  for (const Case& c : cases()) {
    const Attended in = operands(c);
    const AttentionArgs how = args(c);
    const Tensor dout = random(in.q.shape());
    const AttentionOut out = ops::attention(in, how);
    const AttentionGrads whole = testing::attention_backward(dout, out, in, how);
    const AttentionGrads sum{zeros(in.q.shape()), zeros(in.k.shape()), zeros(in.v.shape()), {}, true};
    for (const std::int64_t from : {0, 2}) {
      const std::int64_t count = from == 0 ? 2 : c.sk - 2;
      const auto [some, some_how] = part(in, how, from, count);
      const AttentionGrads share{
          sum.dq, sum.dk.slice(0, from, count), sum.dv.slice(0, from, count), {}, true};
      ops::attention_backward_into(share, dout, out, some, some_how);
    }
    EXPECT_EQ(difference(numbers(sum.dq), numbers(whole.dq), f32_near), "") << c.name;
    EXPECT_EQ(difference(numbers(sum.dk), numbers(whole.dk), f32_near), "") << c.name;
    EXPECT_EQ(difference(numbers(sum.dv), numbers(whole.dv), f32_near), "") << c.name;
  }
}

TEST_F(AttentionOps, count_only_the_pairs_that_may_see_each_other) {
  const auto products = [&](const Case& c) {
    device().work() = {};
    (void)ops::attention(operands(c), args(c));
    return device().work().by[std::size_t(Work::attention)].flops / (4 * c.b * c.g * c.r * c.d);
  };
  EXPECT_EQ(products({.name = "", .mask = Mask::none}), 25);
  EXPECT_EQ(products({.name = "", .r = 2}), 15);
  EXPECT_EQ(products({.name = "", .window = 2}), 9);
  EXPECT_EQ(products({.name = "", .sq = 2, .sk = 8, .diagonal = 6}), 15);
  EXPECT_EQ(products({.name = "", .sq = 6, .sk = 6, .diagonal = -1, .chunk = 4}), 1 + 10);
}

TEST_F(AttentionOps, say_what_does_not_fit) {
  const Case c{.name = ""};
  const Attended in = operands(c);
  const auto said = [&](const Attended& wrong, const AttentionArgs& how = {}) {
    return refused([&] { (void)ops::attention(wrong, how); });
  };
  EXPECT_EQ(said({random({5, 2, 4}), in.k, in.v}), "attention: q [5, 2, 4] has 3 dimensions, not 5");
  EXPECT_EQ(said({in.q, random({5, 2, 3, 4}), in.v}), "attention: k is [5, 2, 3, 4], not [5, 2, 2, 4]");
  EXPECT_EQ(said({in.q, in.k, random({4, 2, 2, 4})}), "attention: v is [4, 2, 2, 4], not [5, 2, 2, 4]");
  EXPECT_EQ(said({in.q, random(in.k.shape(), Dtype::bf16), in.v}), "attention: q is f32, k bf16 and v f32");
  EXPECT_EQ(said({random({5, 2, 2, 1, 0}), random({5, 2, 2, 0}), random({5, 2, 2, 0})}),
            "attention: heads have no channels");
  EXPECT_EQ(said(in, {.window = -1}), "attention: a window of -1 keys");
  EXPECT_EQ(said(in, {.chunk = -1}), "attention: chunks of -1 keys");
  EXPECT_EQ(said(in, {.cap = -1}), "attention: a cap of -1; expected a number above 0, or 0 for none");
  EXPECT_EQ(said(in, {.cap = 1, .bias = random({2, 9}), .bias0 = 4}),
            "attention: scores have a cap or a bias, not both");
  EXPECT_EQ(said(in, {.query_segments = integers({2, 5}, std::vector<double>(10))}),
            "attention: segments are given for queries only");
  EXPECT_EQ(said(in, {.key_segments = integers({2, 5}, std::vector<double>(10))}),
            "attention: segments are given for keys only");
  EXPECT_EQ(said(in, {.bias = random({2, 5, 4})}), "attention: bias [2, 5, 4] has 3 dimensions, not 2");
  EXPECT_EQ(said(in, {.bias = random({3, 9})}), "attention: bias is [3, 9], not [2, 9]");
  EXPECT_EQ(said(in, {.bias = random({2, 9}), .bias0 = 3}),
            "attention: bias has distances -3 to 5, but queries and keys are -4 to 4 apart");
  EXPECT_EQ(said(in, {.bias = random({2, 9}), .bias0 = 5}),
            "attention: bias has distances -5 to 3, but queries and keys are -4 to 4 apart");
  EXPECT_EQ(said(in, {.sinks = random({3})}), "add_sinks: sinks is [3], not [2]");
  EXPECT_EQ(said(in, {.dropout = 1.5F}), "attention: a dropout probability of 1.5 is not in [0, 1)");
  AttentionArgs far = args({.name = "", .dropout = 0.1F});
  far.query0 = 1 << 20;
  EXPECT_EQ(said(in, far),
            "attention: dropout numbers at most 1048576 positions and 8388608 heads; set the attention "
            "dropout to 0 "
            "for longer sequences");
}

TEST_F(AttentionOps, say_which_gradients_do_not_fit) {
  const Case c{.name = ""};
  const Attended in = operands(c);
  const AttentionOut out = ops::attention(in, {});
  const auto said = [&](const AttentionGrads& grads, const Tensor& dout) {
    return refused([&] { ops::attention_backward_into(grads, dout, out, in, {}); });
  };
  const Tensor q = zeros(in.q.shape());
  const Tensor k = zeros(in.k.shape());
  EXPECT_EQ(said({q, k, k, random({2, 5, 5})}, q),
            "attention_backward: dbias is given where there is no bias");
  EXPECT_EQ(said({q, k, k, {}, false, random({2})}, q),
            "attention_backward: dsinks is given where there are no sinks");
  EXPECT_EQ(said({q, k, k}, random({5, 2, 2, 1, 3})),
            "attention_backward: dout is [5, 2, 2, 1, 3], not [5, 2, 2, 1, 4]");
  EXPECT_EQ(said({q, q, k}, q), "attention_backward: dk is [5, 2, 2, 1, 4], not [5, 2, 2, 4]");
  EXPECT_EQ(refused([&] {
              ops::merge_attention(out, {q, zeros({2, 2, 4})});
            }),
            "merge_attention: part.lse is [2, 2, 4], not [2, 2, 5]");
}

}  // namespace
}  // namespace weft
