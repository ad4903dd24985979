// Attention over cut sequences against attention over whole ones.
#include "weft/nn/context_attention.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/made.h"
#include "tests/support/numbers.h"
#include "tests/support/trials.h"
#include "weft/backend/open.h"
#include "weft/base/random.h"
#include "weft/comm/threads.h"
#include "weft/ops/attention.h"
#include "weft/ops/elementwise.h"

using namespace weft;

namespace {

constexpr std::int64_t s = 16, b = 2, g = 4, r = 2, d = 16;

enum class Seen : std::uint8_t { all, documents, all_but_padding };

struct Case {
  std::string name;
  AttentionArgs how = {};
  Seen seen = Seen::all;
  Dtype dtype = Dtype::f32;
  Mask mask = Mask::causal;
  std::int64_t keys = s;  // another number: those of another text
  bool distances = false, sinks = false;
};

/// Whole sequences, the same for every rank.
struct Whole {
  Attended in;
  Tensor dout, query_segments, key_segments, samples, bias, sinks;
};

Tensor drawn(Device& device, const Shape& shape, std::uint64_t number, Dtype dtype) {
  const Draw draw({.seed = 11, .purpose = Purpose::test, .sample = number});
  std::vector<double> values(std::size_t(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * unit_float(draw.word(i)) - 1;
  return of(device, shape, dtype, values);
}

/// [b, steps]: borders inside chunks and between them; or padding at the end, of the second sample a chunk of
/// every rank and more.
Tensor segments_of(Device& device, Seen seen, std::int64_t steps) {
  if (seen == Seen::all) return {};
  std::vector<double> segments;
  for (std::int64_t row = 0; row < b; ++row)
    for (std::int64_t i = 0; i < steps; ++i)
      segments.push_back(seen == Seen::documents ? double(i >= 3) + double(i >= 8 + row)
                                                 : -double(i >= steps - 3 - row * steps / 2));
  return of(device, {b, steps}, Dtype::i32, segments);
}

Whole whole_of(Device& device, const Case& test) {
  const std::int64_t keys = test.keys;
  Whole all{{drawn(device, {s, b, g, r, d}, 1, test.dtype), drawn(device, {keys, b, g, d}, 2, test.dtype),
             drawn(device, {keys, b, g, d}, 3, test.dtype)},
            drawn(device, {s, b, g, r, d}, 4, test.dtype),
            segments_of(device, test.seen, s),
            segments_of(device, test.seen, keys),
            of(device, {b}, Dtype::i64, {41, 42}),
            {},
            {}};
  if (test.sinks) all.sinks = drawn(device, {g * r}, 6, Dtype::f32);
  if (test.distances) all.bias = drawn(device, {g * r, s + keys - 1}, 5, Dtype::f32);
  return all;
}

AttentionArgs args_of(const Case& test, const Whole& all, const Tensor& queries, const Tensor& keys) {
  AttentionArgs how = test.how;
  how.scale = 0.25;
  how.mask = test.mask;
  how.at = {.seed = 3, .purpose = Purpose::dropout_attention, .step = 1, .layer = 2};
  how.query_segments = queries;
  how.key_segments = keys;
  how.bias = all.bias;
  how.sinks = all.sinks;
  how.bias0 = all.bias ? test.keys - 1 : 0;
  how.samples = all.samples;
  how.head0 = 8;
  return how;
}

Tensor zeros_like(const Tensor& x) { return x ? ops::zeros(x.device(), x.shape()) : Tensor(); }

/// This rank's two chunks of a dimension.
Tensor mine(const Communicator& circle, const Tensor& x, int dim) {
  const std::int64_t chunk = x.dim(dim) / (2 * circle.size());
  Shape part = x.shape();
  part[dim] = 2 * chunk;
  const Tensor out = empty(x.device(), part, x.dtype());
  ops::copy_into(out.slice(dim, 0, chunk), x.slice(dim, circle.rank() * chunk, chunk));
  ops::copy_into(out.slice(dim, chunk, chunk),
                 x.slice(dim, (2 * circle.size() - 1 - circle.rank()) * chunk, chunk));
  return out;
}

std::string gap(const Tensor& found, const Tensor& expected, Tolerance within) {
  return difference(numbers(found), numbers(expected), within);
}

enum class Mode { fast, exact };

/// One form and, of two levels, how many trade heads.
struct Way {
  ContextForm form;
  int inner = 1;
};

void compare(Communicator& circle, const Way& way, const Case& test, Mode mode = Mode::fast) {
  const auto device =
      open_device("cpu", {.threads = 1, .exact = mode == Mode::exact, .trials = weft::testing::trials()});
  const Whole all = whole_of(*device, test);
  const AttentionArgs whole_how = args_of(test, all, all.query_segments, all.key_segments);
  const AttentionOut whole = ops::attention(all.in, whole_how);
  const AttentionGrads expected{
      empty_like(all.in.q), empty_like(all.in.k), empty_like(all.in.v), zeros_like(all.bias), false,
      zeros_like(all.sinks)};
  ops::attention_backward_into(expected, all.dout, whole, all.in, whole_how);

  const Attended in{mine(circle, all.in.q, 0), mine(circle, all.in.k, 0), mine(circle, all.in.v, 0)};
  const auto my_steps = [&](const Tensor& x) { return x ? mine(circle, x, 1) : x; };
  const AttentionArgs how = args_of(test, all, my_steps(all.query_segments), my_steps(all.key_segments));
  const ContextLevels levels = context_levels(circle, way.inner);
  const ContextParallel context{
      &circle, way.form, {.exact = mode == Mode::exact}, levels.inner.get(), levels.outer.get()};
  const ContextKept kept = context_attention(context, in, how);
  const AttentionGrads grads{
      empty_like(in.q),     empty_like(in.k), empty_like(in.v), zeros_like(all.bias), false,
      zeros_like(all.sinks)};
  context_attention_backward_into(context, grads, mine(circle, all.dout, 0), kept, how);

  // Parts are summed in another order; bf16 is stored once more on the way out of backward.
  const Tolerance rounded = test.dtype == Dtype::f32 ? Tolerance{2e-5, 2e-6} : Tolerance{2e-2, 2e-2};
  const Tolerance within = mode == Mode::exact ? Tolerance{0, 0} : rounded;
  EXPECT_EQ(gap(kept.out.o, mine(circle, whole.o, 0), within), "") << "o";
  EXPECT_EQ(gap(grads.dq, mine(circle, expected.dq, 0), within), "") << "dq";
  EXPECT_EQ(gap(grads.dk, mine(circle, expected.dk, 0), within), "") << "dk";
  EXPECT_EQ(gap(grads.dv, mine(circle, expected.dv, 0), within), "") << "dv";
  for (const auto& [what, found, wanted] :
       {std::tuple{"dbias", grads.dbias, expected.dbias}, {"dsinks", grads.dsinks, expected.dsinks}}) {
    if (!found) continue;
    circle.all_reduce(found, Reduce::sum).wait();
    EXPECT_EQ(gap(found, wanted, within), "") << what;
  }
}

/// A GPT's, then a BERT's, a T5's encoder's, decoder's, and what its decoder sees of its encoder.
std::vector<Case> cases() {
  return {{.name = "causal"},
          {.name = "documents", .seen = Seen::documents},
          {.name = "window", .how = {.window = 5}},
          {.name = "dropout", .how = {.dropout = 0.25F}},
          {.name = "bf16", .dtype = Dtype::bf16},
          {.name = "open", .mask = Mask::none},
          {.name = "open_dropout", .how = {.dropout = 0.25F}, .mask = Mask::none},
          {.name = "padded", .seen = Seen::all_but_padding, .mask = Mask::none},
          {.name = "padded_bf16", .seen = Seen::all_but_padding, .dtype = Dtype::bf16, .mask = Mask::none},
          {.name = "distances", .mask = Mask::none, .distances = true},
          {.name = "padded_distances", .seen = Seen::all_but_padding, .mask = Mask::none, .distances = true},
          {.name = "causal_distances", .seen = Seen::all_but_padding, .distances = true},
          {.name = "sinks", .how = {.window = 5, .dropout = 0.25F}, .seen = Seen::documents, .sinks = true},
          {.name = "sinks_bf16", .dtype = Dtype::bf16, .sinks = true},
          {.name = "cross", .mask = Mask::none, .keys = 2 * s},
          {.name = "cross_padded",
           .how = {.dropout = 0.25F},
           .seen = Seen::all_but_padding,
           .mask = Mask::none,
           .keys = 3 * s}};
}

class ContextAttention : public ::testing::TestWithParam<std::tuple<Case, ContextForm, int>> {};

}  // namespace

TEST_P(ContextAttention, is_that_of_whole_sequences) {
  const auto& [test, form, ranks] = GetParam();
  run_as_threads(ranks,
                 [&, &test = test, form = form](Communicator& circle) { compare(circle, {form}, test); });
}

class TwoLevels : public ::testing::TestWithParam<Case> {};

// Every cut of the circles, those of one rank among them.
TEST_P(TwoLevels, are_attention_over_whole_sequences) {
  for (const auto& [ranks, inner] : {std::pair{4, 2}, {4, 1}, {4, 4}, {8, 2}, {8, 4}})
    run_as_threads(ranks, [&, inner = inner](Communicator& circle) {
      SCOPED_TRACE(inner);
      compare(circle, {ContextForm::two_levels, inner}, GetParam());
    });
}

// Two ranks trade the four heads, eight cannot.
TEST(ExactContextAttention, is_that_of_whole_sequences_bit_by_bit_in_exact_mode) {
  for (const Case& test : cases())
    for (const int ranks : {2, 8})
      run_as_threads(ranks, [&](Communicator& circle) {
        SCOPED_TRACE(test.name);
        compare(circle, {ContextForm::ring}, test, Mode::exact);
        compare(circle, {ContextForm::two_levels, 2}, test, Mode::exact);
      });
}

namespace {

std::string name_of(const ::testing::TestParamInfo<ContextAttention::ParamType>& made) {
  const auto& [test, form, ranks] = made.param;
  return test.name + "_" + std::string(words(form)[std::size_t(form)]) + std::to_string(ranks);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Forms, ContextAttention,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(ContextForm::ring, ContextForm::gather,
                                                              ContextForm::heads),
                                            ::testing::Values(2, 4)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Forms, TwoLevels, ::testing::ValuesIn(cases()),
                         [](const auto& made) { return made.param.name; });
