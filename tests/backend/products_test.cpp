// Products of tensors on every kind of processor device: batches, groups, and what exact mode does.
#include "weft/backend/cpu/product/products.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/refused.h"
#include "weft/backend/cpu/device.h"
#include "weft/backend/cpu/onednn/engine.h"
#include "weft/backend/cpu/product/check.h"
#include "weft/base/random.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

using fast::Type;

Tensor random(Device& device, const Shape& shape, Dtype dtype, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  fill_uniform(Draw({.seed = seed, .purpose = Purpose::test}), 0, values);
  if (dtype == Dtype::bf16) return from_host(device, shape, std::vector<bf16>(values.begin(), values.end()));
  if (dtype == Dtype::f16) return from_host(device, shape, std::vector<f16>(values.begin(), values.end()));
  return from_host(device, shape, values);
}

/// The same product by a device and by the oracle; numbers in [0, 1), so sums are of the size of k.
struct Compared {
  CpuDevice oracle{{.kernels = CpuKernels::reference}};
  CpuDevice device;
  explicit Compared(CpuKernels kernels, int threads = 2) : device({.threads = threads, .kernels = kernels}) {}

  template <class Act>
  void expect_equal(const Act& act, double tolerance) {
    const std::vector<double> expected = numbers(act(oracle));
    const std::vector<double> found = numbers(act(device));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
  }
};

/// Rounded once to the type after sums in f32, which near the middle of two numbers gives the other one.
double tolerance(Dtype dtype) {
  return dtype == Dtype::f32 ? 3e-6 : dtype == Dtype::bf16 ? 1.0 / 128 : 1.0 / 1024;
}

class Products : public ::testing::TestWithParam<CpuKernels> {
 protected:
  void SetUp() override {
    if (GetParam() == CpuKernels::onednn && !open_onednn()) GTEST_SKIP() << "this build has no oneDNN";
  }
};

TEST_P(Products, are_the_oracles_in_every_form_and_type) {
  Compared both(GetParam());
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    for (const Dtype to : {Dtype::f32, dtype})
      for (int form = 0; form < 16; ++form)
        both.expect_equal(
            [&](Device& device) {
              const Read a = form & 1 ? Read::transposed : Read::as_is;
              const Read b = form & 2 ? Read::transposed : Read::as_is;
              MatmulArgs how{.a = a, .b = b, .accumulate = (form & 4) != 0};
              if (form & 8) how.bias = random(device, {33}, dtype, 4);
              const Tensor out = random(device, {70, 33}, to, 3);
              device.kernels().matmul(out, random(device, form & 1 ? Shape{90, 70} : Shape{70, 90}, dtype, 1),
                                      random(device, form & 2 ? Shape{33, 90} : Shape{90, 33}, dtype, 2),
                                      how);
              return out;
            },
            tolerance(to));
}

TEST_P(Products, walk_long_sums_of_transposed_operands) {
  Compared both(GetParam());
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    both.expect_equal(
        [&](Device& device) {
          const Tensor out = random(device, {20, 32}, Dtype::f32, 3);
          device.kernels().matmul(out, random(device, {2500, 20}, dtype, 1),
                                  random(device, {2500, 32}, dtype, 2),
                                  {.a = Read::transposed, .accumulate = true});
          return out;
        },
        3e-6);
}

TEST_P(Products, serve_few_tokens_in_a_layer) {
  Compared both(GetParam());
  both.expect_equal(
      [&](Device& device) {
        const Tensor out = random(device, {128, 160}, Dtype::f32, 3);
        device.kernels().matmul(out, random(device, {128, 200}, Dtype::f32, 1),
                                random(device, {160, 200}, Dtype::f32, 2),
                                {.b = Read::transposed, .bias = random(device, {160}, Dtype::f32, 4)});
        return out;
      },
      3e-6);
}

TEST_P(Products, go_over_batches_with_rows_of_any_stride) {
  Compared both(GetParam());
  for (const std::int64_t k : {16, 1500})
    both.expect_equal(
        [&](Device& device) {
          const Tensor a = random(device, {50, 5, k}, Dtype::f32, 1).permute({1, 0, 2});
          const Tensor b = random(device, {5, k, 40}, Dtype::f32, 2).slice(2, 3, 31);
          const Tensor out = random(device, {5, 50, 64}, Dtype::f32, 3);
          device.kernels().matmul(out.slice(2, 1, 31), a, b, {});
          return out;
        },
        3e-6);
}

// A dimension of one may have any step; the view of a batch of one token has 1.
TEST_P(Products, read_a_single_row_whatever_its_step) {
  Compared both(GetParam());
  both.expect_equal(
      [&](Device& device) {
        const Tensor a = random(device, {1, 1, 40}, Dtype::f32, 1).view({1, 40});
        const Tensor b = random(device, {24, 40}, Dtype::f32, 2);
        const Tensor out = empty(device, {1, 24});
        device.kernels().matmul(out, a, b, {.b = Read::transposed});
        return out;
      },
      tolerance(Dtype::f32));
}

TEST_P(Products, go_over_groups_of_rows) {
  Compared both(GetParam());
  const std::vector<std::int64_t> offsets = {0, 3, 3, 300, 310};
  const Groups groups{offsets};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    both.expect_equal(
        [&](Device& device) {
          const Tensor out = random(device, {310, 24}, dtype, 3);
          device.kernels().grouped_matmul(out, random(device, {310, 40}, dtype, 1),
                                          random(device, {4, 24, 40}, dtype, 2), groups,
                                          {.b = Read::transposed, .bias = random(device, {4, 24}, dtype, 4)});
          return out;
        },
        tolerance(dtype));
    both.expect_equal(
        [&](Device& device) {
          const Tensor out = random(device, {4, 40, 24}, Dtype::f32, 3);
          device.kernels().grouped_matmul(out, random(device, {310, 40}, dtype, 1),
                                          random(device, {310, 24}, dtype, 2), groups,
                                          {.a = Read::transposed});
          return out;
        },
        3e-6);
  }
}

// Odd groups, odd rows, and tails of tiles: where bf16 is multiplied in pairs, some of these cannot be;
// a depth of 1 has no pair at all.
TEST_P(Products, go_over_groups_of_bf16_without_a_bias) {
  Compared both(GetParam());
  const std::vector<std::int64_t> offsets = {0, 3, 3, 300, 310, 431};
  const Groups groups{offsets};
  for (const std::int64_t k : {1, 40, 41})
    for (const Read read : {Read::as_is, Read::transposed}) {
      both.expect_equal(
          [&](Device& device) {
            const Tensor out = random(device, {431, 100}, Dtype::bf16, 3);
            const Shape weights = read == Read::transposed ? Shape{5, 100, k} : Shape{5, k, 100};
            device.kernels().grouped_matmul(out, random(device, {431, k}, Dtype::bf16, 1),
                                            random(device, weights, Dtype::bf16, 2), groups, {.b = read});
            return out;
          },
          tolerance(Dtype::bf16));
      both.expect_equal(
          [&](Device& device) {
            const Tensor out = random(device, {5, k, 100}, Dtype::f32, 3);
            device.kernels().grouped_matmul(out, random(device, {431, k}, Dtype::bf16, 1),
                                            random(device, {431, 100}, Dtype::bf16, 2), groups,
                                            {.a = Read::transposed, .accumulate = read == Read::as_is});
            return out;
          },
          3e-6);
    }
}

TEST_P(Products, round_sums_of_a_long_depth_once) {
  Compared both(GetParam());
  for (const Dtype to : {Dtype::f32, Dtype::bf16})
    both.expect_equal(
        [&](Device& device) {
          const Tensor wide = random(device, {70, 96}, to, 3);
          const Tensor out = wide.slice(1, 8, 80);
          device.kernels().matmul(out, random(device, {70, 2100}, Dtype::bf16, 1),
                                  random(device, {80, 2100}, Dtype::bf16, 2),
                                  {.b = Read::transposed, .bias = random(device, {80}, Dtype::bf16, 4)});
          return wide;
        },
        tolerance(to));
}

TEST_P(Products, cut_long_sums_into_tiles_that_leave_nothing_out) {
  Compared both(GetParam(), 3);
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    both.expect_equal(
        [&](Device& device) {
          const Tensor out = random(device, {391, 75}, Dtype::f32, 3);
          device.kernels().matmul(out, random(device, {391, 1030}, dtype, 1),
                                  random(device, {1030, 75}, dtype, 2), {.accumulate = true});
          return out;
        },
        3e-6);
}

TEST_P(Products, add_slabs_as_the_oracle_does) {
  Compared both(GetParam());
  both.expect_equal(
      [&](Device& device) {
        const Tensor out = random(device, {30, 32}, Dtype::bf16, 3);
        device.kernels().matmul(out, random(device, {30, 800}, Dtype::bf16, 1),
                                random(device, {800, 32}, Dtype::bf16, 2), {.slabs = 8});
        return out;
      },
      tolerance(Dtype::bf16));
}

INSTANTIATE_TEST_SUITE_P(Devices, Products,
                         ::testing::Values(CpuKernels::fast, CpuKernels::onednn, CpuKernels::best));

/// Multiplies as our own does, but adds a little where there are many rows: an engine with another kernel for
/// them.
class Fickle : public product::Engine {
 public:
  const char* name() const override { return "fickle"; }
  bool takes(const product::Problem&) const override { return true; }
  std::int64_t bytes(const product::Problem& p, int threads) override { return own_.bytes(p, threads); }
  void run(const product::Problem& p, int threads, float* workspace) override {
    ++runs;
    own_.run(p, threads, workspace);
    if (p.m > 8 && p.out.type == Type::f32) *static_cast<float*>(p.out.to) += 1;
  }
  int runs = 0;

 private:
  product::OwnEngine own_{fast::best_here()};
};

TEST(ExactProducts, what_was_found_out_holds_for_every_device_that_shares_it) {
  const auto fickle = std::make_shared<Fickle>();
  const auto trials = std::make_shared<ProductTrials>();
  product::Products first({.exact = true, .trials = trials});
  product::Products second({.exact = true, .trials = trials});
  const std::string refusal = first.use(Type::f32, fickle, 2);
  const int tried = fickle->runs;
  EXPECT_GT(tried, 0);
  EXPECT_EQ(second.use(Type::f32, fickle, 2), refusal);
  EXPECT_EQ(fickle->runs, tried);
  // Other threads and other types may differ, and so they are tried.
  EXPECT_NE(second.use(Type::f32, fickle, 1), "");
  EXPECT_GT(fickle->runs, tried);
}

TEST(ExactProducts, an_engine_whose_bits_depend_on_the_cut_is_replaced_and_named) {
  product::Products exact({.exact = true});
  EXPECT_EQ(exact.use(Type::f32, std::make_shared<Fickle>(), 2),
            "exact mode: fickle's product changes bits when rows are cut (k 40) on this processor; our own "
            "product of "
            "fixed order takes its place");
  CpuDevice device;
  const Tensor ones = from_host(device, {16, 16}, std::vector<float>(256, 1));
  const Tensor out = empty(device, {16, 16});
  exact.matmul(out, ones, ones, {});
  EXPECT_EQ(out.as<float>()[0], 16);
  product::Products quick({.exact = false});
  EXPECT_EQ(quick.use(Type::f32, std::make_shared<Fickle>(), 2), "");
  quick.matmul(out, ones, ones, {});
  EXPECT_EQ(out.as<float>()[0], 17);
}

/// Fickle for one k only.
class FickleAt40 final : public Fickle {
 public:
  void run(const product::Problem& p, int threads, float* workspace) override {
    if (p.k == 40) return Fickle::run(p, threads, workspace);
    product::OwnEngine(fast::best_here()).run(p, threads, workspace);
    ++steady;
  }
  int steady = 0;
};

TEST(ExactProducts, forms_that_hold_stay_with_an_engine_that_changes_bits_in_others) {
  const auto fickle = std::make_shared<FickleAt40>();
  product::Products exact({.exact = true});
  exact.use_form_by_form(Type::f32, fickle, 1);
  CpuDevice device;
  const auto multiplied = [&](std::int64_t k) {
    const Tensor ones = from_host(device, {16, k}, std::vector<float>(std::size_t(16 * k), 1));
    const Tensor out = empty(device, {16, 16});
    exact.matmul(out, ones, ones, {.b = Read::transposed});
    return out.as<float>()[0];
  };
  EXPECT_EQ(multiplied(40), 40) << "our own";
  EXPECT_EQ(multiplied(48), 48);
  const int tried = fickle->steady, runs = fickle->runs;
  EXPECT_EQ(multiplied(48), 48);
  EXPECT_EQ(fickle->steady, tried + 1) << "the engine, tried once";
  EXPECT_EQ(multiplied(40), 40);
  EXPECT_EQ(fickle->runs, runs);
}

/// Computes what is large only, and says that it did.
class Choosy final : public product::Engine {
 public:
  const char* name() const override { return "choosy"; }
  bool takes(const product::Problem&) const override { return true; }
  bool pays(const product::Problem& p) const override { return p.m >= 64; }
  std::int64_t bytes(const product::Problem& p, int threads) override { return own_.bytes(p, threads); }
  void run(const product::Problem& p, int threads, float* workspace) override {
    own_.run(p, threads, workspace);
    *static_cast<float*>(p.out.to) += 1;
  }

 private:
  product::OwnEngine own_{fast::best_here()};
};

TEST(FastProducts, are_computed_by_an_engine_where_that_pays) {
  CpuDevice device({.threads = 2});
  product::Products products({.exact = false});
  EXPECT_EQ(products.use(Type::f32, std::make_shared<Choosy>(), 2), "");
  const Tensor ones = from_host(device, {64, 64}, std::vector<float>(64 * 64, 1));
  const Tensor out = empty(device, {64, 64});
  products.matmul(out.slice(0, 0, 32), ones.slice(0, 0, 32), ones, {});
  EXPECT_EQ(out.as<float>()[0], 64);
  products.matmul(out, ones, ones, {});
  EXPECT_EQ(out.as<float>()[0], 65);
}

TEST(ExactProducts, are_tried_with_results_that_hide_nothing) {
  Fickle fickle;
  for (const Type out : {Type::f32, Type::bf16})
    EXPECT_EQ(product::cutting_changes(fickle, {.k = 40, .type = Type::bf16, .out = out}, 1),
              "changes bits when rows are cut (k 40)");
}

/// A result and the same in two parts of rows, or of columns, as they are stored.
void expect_same_in_parts(Device& device, std::int64_t k, Read read_a, Read read_b) {
  const bool turned_a = read_a == Read::transposed, turned_b = read_b == Read::transposed;
  const Tensor a = random(device, turned_a ? Shape{k, 90} : Shape{90, k}, Dtype::bf16, 1);
  const Tensor b = random(device, turned_b ? Shape{70, k} : Shape{k, 70}, Dtype::bf16, 2);
  const auto multiply = [&](const Tensor& out, const Tensor& rows, const Tensor& columns) {
    device.kernels().matmul(out, rows, columns, {.a = read_a, .b = read_b});
  };
  const int side_a = turned_a ? 1 : 0, side_b = turned_b ? 0 : 1;
  const Shape shape{90, 70};
  const Tensor whole = empty(device, shape), rows = empty(device, shape), columns = empty(device, shape);
  multiply(whole, a, b);
  multiply(rows.slice(0, 0, 3), a.slice(side_a, 0, 3), b);
  multiply(rows.slice(0, 3, 87), a.slice(side_a, 3, 87), b);
  multiply(columns.slice(1, 0, 66), a, b.slice(side_b, 0, 66));
  multiply(columns.slice(1, 66, 4), a, b.slice(side_b, 66, 4));
  const auto same = [&](const Tensor& parts) {
    return std::ranges::equal(parts.as<float>(), whole.as<float>());
  };
  EXPECT_TRUE(same(rows)) << "rows, k " << k;
  EXPECT_TRUE(same(columns)) << "columns, k " << k;
}

TEST(ExactProducts, of_bf16_have_the_same_bits_in_parts) {
  CpuDevice device({.threads = 2, .exact = true});
  for (const std::int64_t k : {1, 7, 16, 32, 64, 100, 384, 400, 800})
    for (const Read a : {Read::as_is, Read::transposed})
      for (const Read b : {Read::as_is, Read::transposed}) expect_same_in_parts(device, k, a, b);
}

TEST(ExactProducts, our_own_never_changes_a_bit) {
  for (const fast::InstructionSet set : fast::all_here()) {
    product::OwnEngine own(set);
    for (const Type type : {Type::f32, Type::bf16, Type::f16})
      EXPECT_EQ(cutting_changes(own, type, 3), "") << name(set);
  }
}

TEST(ExactProducts, a_device_opens_with_all_products_tried) {
  const CpuDevice device({.threads = 2, .exact = true});
  EXPECT_TRUE(device.exact());
  EXPECT_EQ(device.memory().total_peak, 0);
}

TEST(OneDnn, is_refused_by_name_where_the_build_has_none) {
  if (open_onednn()) GTEST_SKIP() << "this build has oneDNN";
  EXPECT_EQ(refused([] { CpuDevice({.kernels = CpuKernels::onednn}); }),
            "device cpu:onednn: this build has no oneDNN (libdnnl-dev); use cpu");
}

}  // namespace
}  // namespace weft
