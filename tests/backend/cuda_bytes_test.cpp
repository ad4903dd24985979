// Bytes of device memory that operations move on the emulated GPU, against the least: every operand once.
// tools/gpu_roofline.py reads what is recorded here: the same operations at the shapes of a GPT-2 124M.
#include <gtest/gtest.h>
#include <runtime.h>

#include <algorithm>
#include <functional>

#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/slabs.h"
#include "weft/backend/cuda/space.h"
#include "weft/backend/open.h"

namespace weft {
namespace {

/// Rows of h elements, attention over s of them in heads that are whole parts of h.
struct Sizes {
  std::int64_t rows, h, s;
};
/// Few, and rows that are whole vectors; attention has two tiles of keys.
constexpr Sizes small{256, 128, 128}, gpt2{16384, 768, 1024};

/// A call of a kernel, what it reads and writes, and its arithmetic.
struct Call {
  std::function<void()> act;
  std::vector<Tensor> reads, writes;
  double flops = 0;
  double again = 0;  // bytes beyond the least, and why stands beside them

  double least() const {
    double bytes = 0;
    for (const auto* all : {&reads, &writes})
      for (const Tensor& t : *all) bytes += double(t.bytes());
    return bytes;
  }
};

/// Makes operands on a device.
struct Maker {
  Device& device;
  Sizes is;

  Tensor tensor(const Shape& shape, Dtype dtype = Dtype::bf16) const {
    Tensor out = empty(device, shape, dtype);
    kernels().fill(out, 0);
    return out;
  }
  Tensor rows(Dtype dtype = Dtype::bf16) const { return tensor({is.rows, is.h}, dtype); }
  Kernels& kernels() const { return device.kernels(); }
};

/// Of a workspace, in f32.
double bytes_of(const Shape& shape) {
  double out = 4;
  for (int d = 0; d < shape.rank(); ++d) out *= double(shape[d]);
  return out;
}

Call product(const Maker& m) {
  const Tensor a = m.rows(), b = m.tensor({m.is.h, m.is.h}), out = m.rows();
  const double flops = 2 * double(m.is.rows) * double(m.is.h) * double(m.is.h);
  return {[=] { m.kernels().matmul(out, a, b, {}); }, {a, b}, {out}, flops};
}

/// As the first half of a layer behind attention, and on the way back.
Call activated_product(const Maker& m) {
  const Tensor a = m.rows(), b = m.tensor({m.is.h, m.is.h}), before = m.rows(), y = m.rows();
  const double flops = 2 * double(m.is.rows) * double(m.is.h) * double(m.is.h);
  return {[=] { m.kernels().matmul_activated(y, before, a, b, {}); }, {a, b}, {before, y}, flops};
}

Call derived_product(const Maker& m) {
  const Tensor a = m.rows(), b = m.tensor({m.is.h, m.is.h}), before = m.rows(), out = m.rows();
  const double flops = 2 * double(m.is.rows) * double(m.is.h) * double(m.is.h);
  return {[=] { m.kernels().matmul_derived(out, before, a, b, {}); }, {a, b, before}, {out}, flops};
}

/// What a layer owes: the sums lie beside, and are added to what is there.
Call weight_gradient(const Maker& m) {
  const Tensor dy = m.rows(), x = m.rows(), dw = m.tensor({m.is.h, m.is.h}, Dtype::f32),
               db = m.tensor({m.is.h}, Dtype::f32);
  const double flops = 2 * double(m.is.rows) * double(m.is.h) * double(m.is.h);
  return {[=] {
            m.kernels().weight_gradient({{dw}, db}, dy, x);
          },
          {dy, x, dw, db},
          {dw, db},
          flops,
          2 * 4 * double(m.is.h)};
}

/// Of logits that are as many as a row of h is long; GPT-2's are 50,304.
Call loss(const Maker& m) {
  const Tensor logits = m.rows(), ids = m.tensor({m.is.rows}, Dtype::i32),
               weight = m.tensor({m.is.rows}, Dtype::f32), losses = m.tensor({m.is.rows}, Dtype::f32);
  return {[=] {
            m.kernels().loss_and_gradient(losses, logits, {ids, weight}, {0, m.is.h, m.is.h});
          },
          {logits, ids, weight},
          {losses, logits}};
}

/// Eight experts of as many rows each, forward; where there are few rows, as many as have a block.
Call grouped_product(const Maker& m) {
  const std::int64_t groups = std::min<std::int64_t>(8, m.is.rows / 128), each = m.is.rows / groups;
  std::vector<std::int64_t> offsets;
  for (std::int64_t g = 0; g <= groups; ++g) offsets.push_back(g * each);
  const Tensor x = m.rows(), w = m.tensor({groups, m.is.h, m.is.h}), out = m.rows();
  // Where groups begin travels to the GPU: into a twin, from there into a tensor, which the kernel reads.
  const double again = 4 * 8 * double(offsets.size());
  return {[=] { m.kernels().grouped_matmul(out, x, w, {offsets}, {.b = Read::transposed}); },
          {x, w},
          {out},
          2 * double(m.is.rows) * double(m.is.h) * double(m.is.h),
          again};
}

Call addition(const Maker& m) {
  const Tensor a = m.rows(), b = m.rows(), out = m.rows();
  return {[=] { m.kernels().add(out, a, b); }, {a, b}, {out}};
}

Call gelu(const Maker& m) {
  const Tensor x = m.rows(), y = m.rows(), bias = m.tensor({m.is.h});
  return {[=] { m.kernels().activation(y, x, bias, Activation::gelu); }, {x, bias}, {y}};
}

Call gelu_backward(const Maker& m) {
  const Tensor x = m.rows(), dx = m.rows(), dy = m.rows(), bias = m.tensor({m.is.h});
  return {[=] { m.kernels().activation_backward(dx, dy, x, bias, Activation::gelu); }, {x, dy, bias}, {dx}};
}

Call bias_sums(const Maker& m) {
  const Tensor dbias = m.tensor({m.is.h}, Dtype::f32), dy = m.rows();
  // Slabs of rows have lines of their own, written and read.
  const double again = 2 * double(dbias.bytes()) * cuda::slabs_of_columns(m.is.rows, m.is.h);
  return {[=] { m.kernels().sum_rows(dbias, dy); }, {dbias, dy}, {dbias}, 0, again};
}

NormStats stats_of(const Maker& m) {
  return {m.tensor({m.is.rows}, Dtype::f32), m.tensor({m.is.rows}, Dtype::f32)};
}

Call norm(const Maker& m) {
  const Tensor x = m.rows(), y = m.rows(), gain = m.tensor({m.is.h}), bias = m.tensor({m.is.h});
  const NormStats stats = stats_of(m);
  return {[=] {
            m.kernels().norm(y, stats, x, {gain, bias}, {});
          },
          {x, gain, bias},
          {y, stats.mean, stats.rstd}};
}

Call norm_backward(const Maker& m) {
  const Tensor x = m.rows(), dx = m.rows(), dy = m.rows(), gain = m.tensor({m.is.h});
  const Tensor dgain = m.tensor({m.is.h}, Dtype::f32), dbias = m.tensor({m.is.h}, Dtype::f32);
  const NormStats stats = stats_of(m);
  const double again =
      2 * double(dgain.bytes() + dbias.bytes()) * cuda::slabs_of_whole_rows(m.is.rows, m.is.h);  // as above
  return {[=] {
            m.kernels().norm_backward({dx, dgain, dbias}, dy, {}, {x, stats, gain}, {});
          },
          {x, dy, gain, stats.mean, stats.rstd, dgain, dbias},
          {dx, dgain, dbias},
          0,
          again};
}

struct Heads {
  Attended in;
  AttentionOut out;
  double flops;  // of one product, of the causal half
};

Heads heads(const Maker& m, std::int64_t d) {
  const std::int64_t n = std::max<std::int64_t>(1, m.is.h / d), b = m.is.rows / m.is.s;
  const Shape of_keys{m.is.s, b, n, d}, of_queries{m.is.s, b, n, 1, d};
  return {{m.tensor(of_queries), m.tensor(of_keys), m.tensor(of_keys)},
          {m.tensor(of_queries), m.tensor({b, n, m.is.s}, Dtype::f32)},
          double(m.is.rows) * double(m.is.s) * double(n * d)};
}
const AttentionArgs causal{.scale = 0.125F, .mask = Mask::causal};

template <std::int64_t d>
Call attention(const Maker& m) {
  const Heads a = heads(m, d);
  return {[=] { m.kernels().attention(a.out, a.in, causal); },
          {a.in.q, a.in.k, a.in.v},
          {a.out.o, a.out.lse},
          2 * a.flops};
}

template <std::int64_t d>
Call attention_backward(const Maker& m) {
  const Heads a = heads(m, d), grads = heads(m, d);
  const Tensor dout = grads.out.o;
  // Corrections, gradients of queries and of keys are a pass each: the first writes two numbers a row of f32,
  // the second and third read them and dout again, and both read q, k and v. That is cheaper than adding by
  // two. In wide heads values have a pass of their own, which reads all of that but v.
  const double of_rows = d > 128 ? 8 : 5, of_numbers = d > 128 ? 8 : 6;
  const double again = of_rows * double(dout.bytes()) + of_numbers * double(a.out.lse.bytes());
  return {[=] {
            m.kernels().attention_backward({grads.in.q, grads.in.k, grads.in.v}, dout, a.out, a.in, causal);
          },
          {a.in.q, a.in.k, a.in.v, a.out.o, a.out.lse, dout},
          {grads.in.q, grads.in.k, grads.in.v},
          5 * a.flops,
          again};
}

/// Filters of four steps for each of h channels.
Call filter(const Maker& m) {
  const Shape shape{m.is.s, m.is.rows / m.is.s, 1, m.is.h};
  const Tensor x = m.tensor(shape), y = m.tensor(shape), w = m.tensor({1, m.is.h, 4});
  return {[=] { m.kernels().convolve(y, x, {w}); }, {x, w}, {y}};
}

Call filter_backward(const Maker& m) {
  const Shape shape{m.is.s, m.is.rows / m.is.s, 1, m.is.h};
  const Tensor x = m.tensor(shape), dx = m.tensor(shape), dy = m.tensor(shape), w = m.tensor({1, m.is.h, 4}),
               dw = m.tensor({1, m.is.h, 4}, Dtype::f32);
  const double again = 2 * bytes_of(cuda::lines_of_filters(x, w));  // stretches have lines of their own
  return {[=] { m.kernels().convolve_backward({dx, dw}, dy, x, {w}); }, {x, dy, w, dw}, {dx, dw}, 0, again};
}

Call biased_filter_backward(const Maker& m) {
  const Shape shape{m.is.s, m.is.rows / m.is.s, 1, m.is.h};
  const Tensor x = m.tensor(shape), dx = m.tensor(shape), dy = m.tensor(shape),
               dw = m.tensor({1, m.is.h, 4}, Dtype::f32), dbias = m.tensor({1, m.is.h}, Dtype::f32);
  const Filters filters{m.tensor({1, m.is.h, 4}), m.tensor({1, m.is.h})};
  const double again = 2 * (bytes_of(cuda::lines_of_filters(x, filters.weight)) +
                            bytes_of(cuda::lines_of_filters(x, filters.bias)));
  return {[=] {
            m.kernels().convolve_backward({dx, dw, dbias}, dy, x, filters);
          },
          {x, dy, filters.weight, filters.bias, dw, dbias},
          {dx, dw, dbias},
          0,
          again};
}

/// Heads of 64 channels. The delta rule's products go without tensor cores, so no rate of those is theirs.
DeltaIn remembered(const Maker& m, bool corrects) {
  const std::int64_t s = m.is.s, b = m.is.rows / s, n = m.is.h / 64;
  return {.q = m.tensor({s, b, n, 64}),
          .k = m.tensor({s, b, n, 64}),
          .v = m.tensor({s, b, n, 1, 64}),
          .decay = m.tensor({s, b, n, 1}),
          .rate = corrects ? m.tensor({s, b, n, 1}) : Tensor(),
          .speed = m.tensor({n, 1}, Dtype::f32),
          .shift = m.tensor({n, 1}, Dtype::f32),
          .skip = corrects ? Tensor() : m.tensor({n, 1}, Dtype::f32)};
}
/// A state space's go by those: of a step, head and 32 columns of values, by channels of keys and beside
/// them.
double operations(const DeltaIn& in, double a_channel, double beside) {
  return double(in.v.elements()) / 32 * (a_channel * double(in.q.dim(3)) + beside);
}
Tensor rate_or_skip(const DeltaIn& in) { return in.corrects() ? in.rate : in.skip; }

template <bool corrects>
Call remember(const Maker& m) {
  const DeltaIn in = remembered(m, corrects);
  const Tensor o = m.tensor(in.v.shape());
  return {[=] { m.kernels().delta_rule(o, in); },
          {in.q, in.k, in.v, in.decay, rate_or_skip(in), in.speed, in.shift},
          {o},
          corrects ? 0 : operations(in, 384, 8192)};
}

template <bool corrects>
Call remember_backward(const Maker& m) {
  const DeltaIn in = remembered(m, corrects), out = remembered(m, corrects);
  const Tensor dout = m.tensor(in.v.shape());
  const DeltaGrads grads{out.q, out.k, out.v, out.decay, out.rate, out.speed, out.shift, out.skip};
  const auto bytes = [](std::initializer_list<Tensor> all) {
    double sum = 0;
    for (const Tensor& t : all) sum += double(t.bytes());
    return sum;
  };
  // Each head and part has lines and numbers of its own, which are added up last, when what fades is asked
  // for once more. States are made first, in the same launch. By tensor cores that is a launch before, of all
  // chunks but a segment's last; another puts slopes in their place; queries and keys have a launch each, and
  // what fades owes is added up by three. States before segments are made of all that comes before the last
  // of those; segments read them and leave slopes there.
  const double fading = bytes({in.decay, in.speed, in.shift}) + (corrects ? bytes({in.rate}) : 0);
  const double numbers = bytes_of(cuda::numbers_of_delta(in)),
               lines = 2 * bytes_of(cuda::lines_of_delta(in, dout)) + 2 * numbers;
  const double states = bytes_of(cuda::states_in_segment(in, dout)),
               chunks = double(cuda::segment_of_delta(in) / cuda::scan_chunk),
               segments = double(cuda::segments_of_delta(in));
  const double by_tiles = 4 * states + 3 * fading + bytes({in.k, in.v}) * (chunks - 1) / chunks +
                          bytes({in.q, in.k, in.v, dout}) + bytes({in.q, dout}) + 4 * numbers / 3;
  const double of_states = corrects ? states : states + by_tiles;
  const double of_segments = (fading + bytes({in.k, in.v})) * (segments - 1) / segments +
                             (corrects ? 3 : 4) * bytes_of(cuda::states_of_segments(in, dout));
  const double again = fading + lines + of_states + of_segments;
  std::vector<Tensor> reads{in.q,     in.k,     in.v, in.decay,     rate_or_skip(in),
                            in.speed, in.shift, dout, grads.dspeed, grads.dshift};
  if (!corrects) reads.push_back(grads.dskip);
  return {[=] { m.kernels().delta_rule_backward(grads, dout, in); },
          reads,
          {grads.dq, grads.dk, grads.dv, grads.ddecay, rate_or_skip(out), grads.dspeed, grads.dshift},
          corrects ? 0 : operations(in, 1408, 16384),
          again};
}

Call adam(const Maker& m) {
  const auto flat = [&](Dtype dtype) { return m.tensor({m.is.rows * m.is.h}, dtype); };
  const AdamState state{flat(Dtype::f32), flat(Dtype::f32), flat(Dtype::f32), flat(Dtype::bf16)};
  const Tensor grad = flat(Dtype::f32);
  return {[=] { m.kernels().adam(state, grad, {.rate = 1e-3F}); },
          {state.master, state.m, state.v, grad},
          {state.master, state.m, state.v, state.copy}};
}

struct Case {
  const char* name;
  Call (*make)(const Maker&);
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class BytesMoved : public ::testing::TestWithParam<Case> {};

TEST_P(BytesMoved, are_the_least_or_have_a_reason) {
  emulated::set_pace(emulated::lazy);
  CudaDevice gpu;
  const Call call = GetParam().make({gpu, small});
  gpu.synchronize();
  const std::uint64_t before = emulated::meter().moved;
  call.act();
  gpu.synchronize();
  EXPECT_EQ(double(emulated::meter().moved - before), call.least() + call.again);

  const auto counter = open_device("meta");
  const Call real = GetParam().make({*counter, gpt2});
  RecordProperty("share", std::to_string(1 + real.again / real.least()));
  RecordProperty("bytes", std::to_string(real.least() + real.again));
  RecordProperty("flops", std::to_string(real.flops));
}

INSTANTIATE_TEST_SUITE_P(
    Operations, BytesMoved,
    ::testing::Values(
        Case{"product", product}, Case{"activated_product", activated_product},
        Case{"derived_product", derived_product}, Case{"weight_gradient", weight_gradient},
        Case{"loss", loss}, Case{"grouped_product", grouped_product}, Case{"add", addition},
        Case{"gelu", gelu}, Case{"gelu_backward", gelu_backward}, Case{"sum_rows", bias_sums},
        Case{"norm", norm}, Case{"norm_backward", norm_backward}, Case{"attention", attention<64>},
        Case{"attention_backward", attention_backward<64>}, Case{"attention_256", attention<256>},
        Case{"attention_256_backward", attention_backward<256>}, Case{"filter", filter},
        Case{"filter_backward", filter_backward}, Case{"biased_filter_backward", biased_filter_backward},
        Case{"delta_rule", remember<true>}, Case{"delta_rule_backward", remember_backward<true>},
        Case{"state_space", remember<false>}, Case{"state_space_backward", remember_backward<false>},
        Case{"adam", adam}),
    [](const auto& about) { return std::string(about.param.name); });

}  // namespace
}  // namespace weft
