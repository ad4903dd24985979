// Norms and their gradients of rows side by side: as alone. Norms as precise as in double where a row is far
// from zero.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/backend/cpu/fast/loops.h"
#include "weft/base/error.h"
#include "weft/base/half.h"

namespace weft::fast {
namespace {

constexpr float epsilon = 1e-5F;

/// Rows of one type, and what becomes of them.
template <class T>
struct NormedRows {
  NormedRows(Type rows_type, std::int64_t rows, std::int64_t width)
      : type(rows_type),
        count(rows),
        n(width),
        x(std::size_t(rows * width)),
        y(x.size()),
        gain(std::size_t(width), 1.5F),
        bias(std::size_t(width), 0.25F),
        mean(std::size_t(rows)),
        rstd(std::size_t(rows)) {}
  void run(InstructionSet set, NormKind kind, std::int64_t first, std::int64_t together) {
    const std::int64_t step = n * size_of(type);
    const NormRows rows = {{{y.data() + first * n, type, false}, step},
                           {{x.data() + first * n, type}, step},
                           together,
                           mean.data() + first,
                           rstd.data() + first};
    loops(set).norm.forward(rows, gain.data(), bias.data(), {kind, epsilon, n});
  }
  Type type;
  std::int64_t count, n;
  std::vector<T> x, y;
  std::vector<float> gain, bias, mean, rstd;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Rows all at once on every instruction set, beside one after the other in plain loops; results: names and
/// members.
template <class Work, class... Results>
void expect_alike(const Work& fresh, NormKind kind, Results... results) {
  Work apart = fresh;
  for (std::int64_t i = 0; i < apart.count; ++i) apart.run(InstructionSet::generic, kind, i, 1);
  for (const InstructionSet set : all_here()) {
    Work together = fresh;
    together.run(set, kind, 0, together.count);
    const auto expect = [&](const auto& result) {
      EXPECT_TRUE(same_bits(apart.*result.second, together.*result.second))
          << name(set) << ", rows of " << fresh.n << ", " << result.first;
    };
    (expect(results), ...);
  }
}

template <class T>
void expect_rows_alike(Type type, NormKind kind, std::int64_t n) {
  NormedRows<T> fresh(type, 7, n);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.5F, 2.0F);
  for (T& one : fresh.x) one = T(normal(random));
  using Work = NormedRows<T>;
  expect_alike(fresh, kind, std::pair("y", &Work::y), std::pair("mean", &Work::mean),
               std::pair("rstd", &Work::rstd));
}

TEST(NormedRows, give_the_same_bits_together_and_apart_on_every_instruction_set) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms})
    for (const std::int64_t n : {1, 16, 70, 512, 513, 1040, 1111}) {
      expect_rows_alike<float>(Type::f32, kind, n);
      expect_rows_alike<bf16>(Type::bf16, kind, n);
      expect_rows_alike<f16>(Type::f16, kind, n);
    }
}

/// A residual and what a norm's sum makes of it, with its statistics.
template <class T>
struct Summed {
  Summed(Type of, std::int64_t width, float probability) : type(of), n(width), x(std::size_t(width)) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0.5F, 2.0F);
    for (T& one : x) one = T(normal(random));
    residual = x;
    for (T& one : residual) one = T(normal(random));
    bias.resize(x.size());
    for (float& one : bias) one = normal(random);
    drop = {{1, 2}, {3, 4}, 8, std::uint32_t(double(probability) * 4294967296.0), 1 / (1 - probability)};
  }
  SumRow row() {
    sum = copy = std::vector<T>(x.size());
    return {{sum.data(), type, false}, copy.data(), {x.data(), type}, bias.data(),
            {residual.data(), type},   drop};
  }
  Type type;
  std::int64_t n;
  std::vector<T> x, residual, sum, copy;
  std::vector<float> bias;
  DropRow drop;
};

template <class T>
void expect_norms_bits(InstructionSet set, NormKind kind, Summed<T> of) {
  const std::string what = text(name(set), ", ", of.n, " elements, first ", of.drop.first);
  loops(set).norm.sum(of.row(), of.n);
  const std::vector<T> plain = of.sum;
  NormedRows<T> rows(of.type, 1, of.n);
  rows.x = plain;
  rows.run(set, kind, 0, 1);
  // The row before is another norm's, written meanwhile.
  const std::vector<T> y = rows.y;
  rows.y.assign(rows.y.size(), T(0.0F));
  const NormDue before = {{rows.y.data(), of.type, false},
                          {plain.data(), of.type},
                          {kind == NormKind::layer ? rows.mean[0] : 0, rows.rstd[0]},
                          rows.gain.data(),
                          rows.bias.data()};
  const NormRow found = loops(set).norm.sum_wide(of.row(), &before, {kind, epsilon, of.n});
  EXPECT_TRUE(same_bits(rows.y, y)) << what;
  EXPECT_TRUE(same_bits(of.sum, plain)) << what;
  EXPECT_TRUE(same_bits(of.copy, plain)) << what;
  EXPECT_EQ(found.rstd, rows.rstd[0]) << what;
  if (kind == NormKind::layer) {
    EXPECT_EQ(found.mean, rows.mean[0]) << what;
  }
}

TEST(NormSums, give_the_statistics_that_a_norm_by_itself_would) {
  for (const InstructionSet set : all_here())
    for (const NormKind kind : {NormKind::layer, NormKind::rms})
      for (const std::int64_t n : {513, 640, 1000, 1111, 4096})
        for (const float probability : {0.0F, 0.1F})
          for (const std::uint64_t first : {std::uint64_t{8}, std::uint64_t{9}}) {
            Summed<float> f32(Type::f32, n, probability);
            Summed<bf16> half(Type::bf16, n, probability);
            f32.drop.first = half.drop.first = first;
            expect_norms_bits(set, kind, f32);
            expect_norms_bits(set, kind, half);
          }
}

/// Gradients of rows of one type.
template <class T>
struct Backward {
  Backward(Type of, std::int64_t rows, std::int64_t width)
      : type(of), count(rows), n(width), dy(std::size_t(rows * width)) {
    std::mt19937 random(13);
    std::normal_distribution<float> normal(0.5F, 2.0F);
    const auto draw = [&](auto& numbers) {
      for (auto& one : numbers) one = std::remove_reference_t<decltype(one)>(normal(random));
    };
    x = residual = dx = dy;
    gain.resize(std::size_t(n));
    mean.resize(std::size_t(rows));
    draw(dy);
    draw(x);
    draw(residual);
    draw(gain);
    draw(mean);
    rstd = mean;
    dgain = dbias = std::vector<float>(gain.size(), 1.0F);
  }
  void run(InstructionSet set, NormKind kind, std::int64_t first, std::int64_t together) {
    const std::int64_t at = first * n, step = n * size_of(type);
    loops(set).norm.backward({{{dx.data() + at, type, false}, step},
                              {{dy.data() + at, type}, step},
                              {{residual.data() + at, type}, step},
                              {{x.data() + at, type}, step},
                              together,
                              kind == NormKind::layer ? mean.data() + first : nullptr,
                              rstd.data() + first},
                             gain.data(), dgain.data(), dbias.data(), {kind, epsilon, n});
  }
  Type type;
  std::int64_t count, n;
  std::vector<T> dy, x, residual, dx;
  std::vector<float> gain, mean, rstd, dgain, dbias;
};

template <class T>
void expect_gradients_alike(Type type, NormKind kind, std::int64_t n) {
  using Work = Backward<T>;
  expect_alike(Work(type, 5, n), kind, std::pair("dx", &Work::dx), std::pair("dgain", &Work::dgain),
               std::pair("dbias", &Work::dbias));
}

TEST(NormGradients, have_the_same_bits_together_and_apart_on_every_instruction_set) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms})
    for (const std::int64_t n : {1, 16, 70, 512, 1040, 1111}) {
      expect_gradients_alike<float>(Type::f32, kind, n);
      expect_gradients_alike<bf16>(Type::bf16, kind, n);
      expect_gradients_alike<f16>(Type::f16, kind, n);
    }
}

/// Of the first row, in double.
struct Right {
  explicit Right(const NormedRows<float>& rows) {
    for (std::int64_t j = 0; j < rows.n; ++j) mean += double(rows.x[std::size_t(j)]) / double(rows.n);
    for (std::int64_t j = 0; j < rows.n; ++j)
      variance += std::pow(double(rows.x[std::size_t(j)]) - mean, 2) / double(rows.n);
  }
  double mean = 0, variance = 0;
};

/// f32 sums of 4096 numbers in 64 lanes are off by a few units of 6e-8; a center that cancels would cost
/// 1e-3.
void expect_precise(NormedRows<float>& rows, const char* what) {
  const Right right(rows);
  const double rstd = 1 / std::sqrt(right.variance + double(epsilon));
  for (const InstructionSet set : all_here()) {
    rows.run(set, NormKind::layer, 0, 1);
    EXPECT_NEAR(double(rows.rstd[0]) / rstd, 1, 1e-6) << what << ", " << name(set);
    EXPECT_NEAR(double(rows.mean[0]), right.mean, 2e-7 * (std::abs(right.mean) + std::sqrt(right.variance)))
        << what << ", " << name(set);
  }
}

TEST(NormedRows, keep_their_precision_far_from_zero_and_with_outliers) {
  NormedRows<float> rows(Type::f32, 1, 4096);
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  const auto draw = [&](float mean) {
    for (float& one : rows.x) one = mean + normal(random);
  };
  draw(1000);
  expect_precise(rows, "mean 1000");
  draw(0);
  rows.x[3] = 300;
  expect_precise(rows, "one outlier among the first");
  for (std::size_t j = 0; j < 64; ++j) rows.x[j] = 1e4F;
  expect_precise(rows, "nothing but outliers at first");
  rows.x.assign(rows.x.size(), 0.3F);
  expect_precise(rows, "constant");
}

TEST(NormedRows, that_hold_no_number_leave_their_neighbours_alone) {
  for (const std::int64_t n : {64, 1024}) {
    NormedRows<float> rows(Type::f32, 6, n);
    for (std::size_t i = 0; i < rows.x.size(); ++i) rows.x[i] = float(i % 7);
    NormedRows<float> spoilt = rows;
    spoilt.x[std::size_t(2 * n + 5)] = std::numeric_limits<float>::quiet_NaN();
    for (const InstructionSet set : all_here()) {
      rows.run(set, NormKind::layer, 0, rows.count);
      spoilt.run(set, NormKind::layer, 0, rows.count);
      for (std::int64_t i = 0; i < rows.count; ++i) {
        const auto at = std::size_t(i);
        EXPECT_EQ(std::isnan(spoilt.rstd[at]), i == 2) << name(set) << ", row " << i << " of " << n;
        if (i != 2) {
          EXPECT_EQ(spoilt.y[at * std::size_t(n)], rows.y[at * std::size_t(n)]) << "row " << i << " of " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::fast
