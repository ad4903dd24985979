// Operands large enough for several threads and for stores past the caches: every instruction set and every
// number of threads must give the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "tests/backend/fast_device.h"
#include "tests/support/sanitized.h"
#include "weft/tensor/exact_sum.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

using fast::InstructionSet;
using testing::FastDevice;

constexpr int team = WEFT_TEAM;
constexpr std::int64_t t = 1056, h = 2016;  // 8.5 MB of f32: more than fast::past_the_caches
constexpr std::int64_t few = 32;            // enough rows for a team
static_assert(t * h * 4 > std::int64_t{8} << 20);

/// Operands and results of one run, by a word for each.
class Bench {
 public:
  Bench(InstructionSet set, int threads) : device_(set, threads, &plain_) {}
  Kernels& kernels() { return device_.kernels(); }
  Tensor blank(const Shape& shape, Dtype dtype = Dtype::f32) { return empty(device_, shape, dtype); }
  Tensor random(const Shape& shape, std::uint64_t step, Dtype dtype = Dtype::f32) {
    const Tensor out = blank(shape, dtype);
    kernels().random_uniform(out.rows(), -2, 2,
                             {{.seed = 3, .purpose = Purpose::test, .step = step}, 0, 0, h});
    return out;
  }
  Tensor vector(std::uint64_t step) { return random({1, h}, step).view({h}); }
  template <class T>
  Tensor holding(const Shape& shape, const std::vector<T>& values) {
    return from_host(device_, shape, values);
  }
  void keep(const Tensor& tensor) { kept_.push_back(tensor); }
  std::vector<Tensor> results() const { return kept_; }
  /// How often a kernel was left to plain loops.
  std::int64_t plainly(const std::string& kernel) { return plain_[kernel]; }

 private:
  PlainCalls plain_;
  FastDevice device_;
  std::vector<Tensor> kept_;
};

using Act = std::function<void(Bench&)>;

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const char* set, int threads) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(std::memcmp(a[i].address(), b[i].address(), std::size_t(a[i].bytes())), 0)
        << "result " << i << " differs with " << set << " and " << threads << " threads";
}

/// On every set from this one on.
void same_bits_from(InstructionSet least, const Act& act) {
  Bench plain(least, 1);
  act(plain);
  for (const InstructionSet set : fast::all_here())
    if (set >= least)
      for (const int threads : testing::some_of<int>({team, 1}, 2)) {
        Bench other(set, threads);
        act(other);
        expect_equal(plain.results(), other.results(), name(set), threads);
      }
}

void same_bits(const Act& act) { same_bits_from(InstructionSet::generic, act); }

DropoutArgs dropout(Bench& bench) {
  DropoutArgs how{.probability = 0.1F, .at = {.seed = 1, .purpose = Purpose::dropout_hidden}};
  std::vector<std::int32_t> positions(t / 2);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = std::int32_t(i);
  how.samples = bench.holding<std::int64_t>({2}, {5, 9});
  how.positions = bench.holding({t / 2}, positions);
  how.width = h + 1;  // rows start between blocks of four
  return how;
}

TEST(SameBits, elementwise) {
  same_bits([](Bench& b) {
    const Tensor x = b.random({t, h}, 1);
    const Tensor y = b.random({t, h}, 2, Dtype::bf16);
    const Tensor out = b.blank({t, h});
    b.kernels().add(out, x, y);
    b.kernels().add_scaled(out, y, 0.3F);
    b.keep(out);
    const Tensor narrow = b.blank({t, h}, Dtype::f16);
    b.kernels().copy(narrow, out);
    b.keep(narrow);
    const Tensor sums = b.random({1, h}, 3).view({h});
    b.kernels().sum_rows(sums, y);
    b.keep(sums);
  });
}

TEST(SameBits, dropout_and_residual) {
  same_bits([](Bench& b) {
    const Tensor x = b.random({t / 2, 2, h}, 1, Dtype::bf16);
    const Tensor out = b.blank({t / 2, 2, h});
    b.kernels().bias_dropout_add(out, x, b.vector(2), b.random({t / 2, 2, h}, 3), dropout(b));
    b.keep(out);
  });
}

TEST(SameBits, activations) {
  for (const Activation kind : {Activation::gelu, Activation::gelu_erf, Activation::silu, Activation::tanh})
    same_bits([&](Bench& b) {
      const Tensor x = b.random({few, h}, 1);
      const Tensor y = b.blank({few, h});
      b.kernels().activation(y, x, b.vector(2), kind);
      b.keep(y);
      const Tensor dx = b.random({few, h}, 3);
      b.kernels().activation_backward(dx, dx, x, {}, kind);
      b.keep(dx);
      const Tensor half = b.blank({few, h / 2}, Dtype::bf16);
      b.kernels().gated(half, x, {}, {kind});
      b.keep(half);
      b.kernels().gated_backward(dx, half, x, {}, {kind});
      b.keep(dx);
    });
}

TEST(SameBits, norms) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    same_bits([&](Bench& b) {
      const Shape shape{t / 2, 2, h};
      const NormStats stats{b.blank({t / 2, 2}), b.blank({t / 2, 2})};
      const SumNormOut out{b.blank(shape, dtype), b.blank(shape, dtype), stats};
      const SumNormIn in{b.random(shape, 1, dtype), {}, b.random(shape, 2, dtype), dropout(b)};
      const Tensor gain = b.vector(4);
      b.kernels().sum_norm(out, in, {gain, b.vector(5)}, {});
      const NormGrads grads{b.blank(shape, dtype), b.vector(6), b.vector(7)};
      b.kernels().norm_backward(grads, in.x, in.residual, {out.sum, stats, gain}, {});
      for (const Tensor& one : {out.sum, out.y, stats.mean, stats.rstd, grads.dx, grads.dgain, grads.dbias})
        b.keep(one);
    });
}

TEST(SameBits, softmax_and_loss) {
  same_bits([](Bench& b) {
    const Tensor x = b.random({few, h}, 1);
    const Tensor y = b.blank({few, h});
    b.kernels().softmax(y, x);
    b.keep(y);
    const LossParts parts{b.blank({few}), b.blank({few}), b.blank({few})};
    std::vector<std::int32_t> ids(few);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int32_t(7 * i % h);
    const LossTargets targets{b.holding({few}, ids), b.holding({few}, std::vector<float>(few, 0.5F))};
    const VocabularyPart part{0, h - 5, h - 5};
    b.kernels().loss_max(parts, x, part);
    b.kernels().loss_sums(parts, x, targets.ids, part);
    b.kernels().loss_backward(x, parts, targets, part);
    for (const Tensor& one : {x, parts.max, parts.sum, parts.target}) b.keep(one);
  });
}

TEST(SameBits, filters) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const std::int64_t taps : {3, 4})
      same_bits([&](Bench& b) {
        const Shape shape{300, 2, 3, 48};
        const Tensor x = b.random({600, 144}, 1, dtype).view(shape);
        const Tensor dy = b.random({600, 144}, 2, dtype).view(shape);
        const Tensor weight = b.random({3 * 48, taps}, 3).view({3, 48, taps});
        const Tensor dweight = b.random({3 * 48, taps}, 4).view({3, 48, taps});
        const Tensor bias = b.random({3, 48}, 5), dbias = b.random({3, 48}, 6);
        for (const bool biased : {false, true}) {
          const Filters filters{weight, biased ? bias : Tensor()};
          const Tensor y = b.blank(shape, dtype), dx = b.blank(shape, dtype);
          b.kernels().convolve(y, x, filters);
          b.kernels().convolve_backward({dx, dweight, biased ? dbias : Tensor()}, dy, x, filters);
          b.keep(y);
          b.keep(dx);
        }
        b.keep(dweight);
        b.keep(dbias);
        EXPECT_EQ(b.plainly("convolve") + b.plainly("convolve_backward"), 0);
      });
}

void remember(Bench& b, Dtype dtype, std::int64_t r, bool corrects) {
  constexpr std::int64_t s = 110, g = 2, d = 24, d_value = 40;
  const auto of_keys = [&](std::uint64_t step) {
    const Tensor x = b.random({s * 2 * g, d}, step, dtype).view({s, 2, g, d});
    b.kernels().scale(x, 0.15F);
    return x;
  };
  const auto of_values = [&](std::uint64_t step) {
    return b.random({s * 2 * g * r, d_value}, step, dtype).view({s, 2, g, r, d_value});
  };
  const auto of_numbers = [&](std::uint64_t step) {
    return b.random({s * 2 * g, r}, step, dtype).view({s, 2, g, r});
  };
  const auto of_heads = [&](std::uint64_t step) { return b.random({g, r}, step); };
  DeltaIn in{of_keys(1), of_keys(2), of_values(3), of_numbers(4), {}, of_heads(6), of_heads(7)};
  const auto like = [&](const Tensor& x) { return b.blank(x.shape(), dtype); };
  DeltaGrads grads{like(in.q), like(in.k), like(in.v), like(in.decay), {}, of_heads(8), of_heads(9)};
  (corrects ? in.rate : in.skip) = corrects ? of_numbers(5) : of_heads(5);
  (corrects ? grads.drate : grads.dskip) = corrects ? like(in.rate) : of_heads(11);
  const Tensor o = like(in.v);
  b.kernels().delta_rule(o, in);
  b.kernels().delta_rule_backward(grads, of_values(10), in);
  for (const Tensor& one : {o, grads.dq, grads.dk, grads.dv, grads.ddecay, grads.dspeed, grads.dshift,
                            corrects ? grads.drate : grads.dskip})
    b.keep(one);
  EXPECT_EQ(b.plainly("delta_rule") + b.plainly("delta_rule_backward"), 0);
}

/// Its products are rounded once where the processor has an instruction for that, which the generic loops of
/// an x86 do without.
TEST(SameBits, delta_rule) {
  if (!fast::runs_here(InstructionSet::avx2)) GTEST_SKIP() << "one set of loops";
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    same_bits_from(InstructionSet::avx2, [&](Bench& b) { remember(b, dtype, 2, true); });
}
/// The heads of a group in one task, and in several.
TEST(SameBits, state_space) {
  if (!fast::runs_here(InstructionSet::avx2)) GTEST_SKIP() << "one set of loops";
  for (const std::int64_t r : {2, 19})
    same_bits_from(InstructionSet::avx2, [&](Bench& b) { remember(b, Dtype::bf16, r, false); });
}

TEST(SameBits, sums) {
  same_bits([](Bench& b) {
    const Tensor x = b.random({few, h}, 1);
    const Tensor out = b.blank({1}, Dtype::f64);
    b.kernels().sum(out, x);
    b.keep(out);
    for (const Tensor& one : {x, b.random({few, h}, 2, Dtype::bf16)}) {
      const Tensor digits = b.holding({exact_digits}, std::vector<double>(exact_digits));
      b.kernels().sum_squares(digits, one);
      b.kernels().sum_exact(digits, one);
      b.keep(digits);
    }
  });
}

/// What is no number, in words that rounding by a carry would turn into zero.
Tensor no_numbers(Bench& b) {
  return b.holding({h}, std::vector<float>(h, std::bit_cast<float>(0xffffffffU)));
}
bool has_a_number(const Tensor& x) {
  const auto* first = x.data<bf16>();
  return std::any_of(first, first + x.elements(), [](bf16 one) { return !std::isnan(float(one)); });
}

TEST(Norms, in_bf16_keep_what_is_no_number) {
  for (const InstructionSet set : fast::all_here()) {
    Bench b(set, 1);
    const Tensor x = b.random({few, h}, 1, Dtype::bf16);
    const Tensor gain = no_numbers(b);
    const NormStats stats{b.blank({few}), b.blank({few})};
    const SumNormOut out{b.blank({few, h}, Dtype::bf16), b.blank({few, h}, Dtype::bf16), stats};
    b.kernels().sum_norm(out, {x, {}, x, {}}, {gain, gain}, {});
    EXPECT_FALSE(has_a_number(out.y)) << name(set);
    b.kernels().norm(out.y, stats, x, {gain, {}}, {});
    EXPECT_FALSE(has_a_number(out.y)) << name(set);
    b.kernels().norm_backward({out.y, {}, {}}, x, {}, {x, stats, gain}, {});
    EXPECT_FALSE(has_a_number(out.y)) << name(set);
  }
}

TEST(SameBits, embedding_and_adam) {
  same_bits([](Bench& b) {
    std::vector<std::int32_t> ids(few);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int32_t(i * i % 90) - 3;
    const Tensor index = b.holding({few}, ids);
    const Tensor table = b.random({80, h}, 1);
    const Tensor out = b.blank({few, h});
    b.kernels().gather(out, table, index, 2);
    b.keep(out);
    b.kernels().scatter_add(table, out, index, 2);
    b.keep(table);
    const AdamState state{b.random({few * h}, 1), b.random({few * h}, 2), b.blank({few * h}),
                          b.blank({few * h}, Dtype::bf16)};
    b.kernels().multiply(state.v, state.m, state.m);
    b.kernels().adam(state, out.view({few * h}), {.rate = 0.01F, .decay = 0.1F, .correction1 = 0.5F});
    for (const Tensor& one : {state.master, state.m, state.v, state.copy}) b.keep(one);
  });
}

}  // namespace
}  // namespace weft
