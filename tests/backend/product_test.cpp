// Our own product against sums in double, and against itself cut otherwise.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <vector>

#include "weft/backend/cpu/product/run.h"
#include "weft/base/half.h"
#include "weft/base/random.h"

namespace weft::product {
namespace {

using fast::InstructionSet;
using fast::Type;

/// A matrix of any type with gaps between its rows, and its numbers.
struct Numbers {
  std::int64_t rows, columns, row;
  Type type;
  std::vector<std::uint16_t> halves;
  std::vector<float> floats;

  Numbers(std::int64_t r, std::int64_t c, Type t, std::uint64_t seed)
      : rows(r),
        columns(c),
        row(c + std::int64_t(seed % 3)),
        type(t),
        halves(std::size_t(r * row)),
        floats(std::size_t(r * row)) {
    fill_uniform(Draw({.seed = seed, .purpose = Purpose::test}), 0, floats);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      floats[i] -= 0.5F;
      if (t == Type::bf16) halves[i] = bf16(floats[i]).bits, floats[i] = bf16(floats[i]);
      if (t == Type::f16) halves[i] = f16(floats[i]).bits, floats[i] = f16(floats[i]);
    }
  }
  float at(std::int64_t i, std::int64_t j) const {
    const auto k = std::size_t(i * row + j);
    if (type == Type::bf16) return bf16::from_bits(halves[k]);
    if (type == Type::f16) return f16::from_bits(halves[k]);
    return floats[k];
  }
  void* data() { return type == Type::f32 ? static_cast<void*>(floats.data()) : halves.data(); }
  Matrix matrix() { return {data(), type, row}; }
};

struct Case {
  std::int64_t m, n, k;
  Type type = Type::f32, out = Type::f32;
  bool a_turned = false, b_turned = false, accumulate = false, bias = false;
  int slabs = 1, threads = 1;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.m << "x" << c.n << "x" << c.k << " types " << int(c.type) << int(c.out) << " turned "
       << c.a_turned << c.b_turned << " accumulate " << c.accumulate << " bias " << c.bias << " slabs "
       << c.slabs << " threads " << c.threads;
}

struct Operands {
  Numbers a, b, bias, out;
  explicit Operands(const Case& c)
      : a(c.a_turned ? c.k : c.m, c.a_turned ? c.m : c.k, c.type, 10),
        b(c.b_turned ? c.n : c.k, c.b_turned ? c.k : c.n, c.type, 11),
        bias(1, c.n, c.type, 12),
        out(c.m, c.n, c.out, 13) {}
};

/// Rows and columns [i, i + m) [j, j + n) of the product into the same place of out.
void run_part(const Case& c, Operands& o, const Loops& inner, std::array<std::int64_t, 4> part) {
  const auto [i, m, j, n] = part;
  const auto at = [](Numbers& x, std::int64_t r, std::int64_t s) {
    Matrix whole = x.matrix();
    whole.from = static_cast<char*>(x.data()) + (r * x.row + s) * (x.type == Type::f32 ? 4 : 2);
    return whole;
  };
  Problem p;
  p.m = m;
  p.n = n;
  p.k = c.k;
  p.a = c.a_turned ? at(o.a, 0, i) : at(o.a, i, 0);
  p.b = c.b_turned ? at(o.b, j, 0) : at(o.b, 0, j);
  p.a_turned = c.a_turned;
  p.b_turned = c.b_turned;
  const Matrix out = at(o.out, i, j);
  p.out = {const_cast<void*>(out.from), c.out, false};
  p.out_row = o.out.row;
  p.accumulate = c.accumulate;
  p.has_bias = c.bias;
  if (c.bias) p.bias = {at(o.bias, 0, j).from, c.type};
  p.slabs = c.slabs;
  std::vector<float> workspace(std::size_t(plan(p.form(), c.threads).bytes() / 4), 1e30F);
  product::run(p, inner, c.threads, workspace.data());
}

/// The result in double, and the sum of the terms' magnitudes, row by row.
struct Sums {
  std::vector<double> sum, size;
  explicit Sums(const Case& c) : sum(std::size_t(c.m * c.n)), size(sum.size()) {
    const Operands o(c);
    for (std::int64_t i = 0; i < c.m; ++i) {
      double* row = sum.data() + i * c.n;
      double* row_size = size.data() + i * c.n;
      for (std::int64_t j = 0; j < c.n; ++j) {
        const double first = c.bias ? o.bias.at(0, j) : 0;
        const double old = c.accumulate ? o.out.at(i, j) : 0;
        row[j] = first + old;
        row_size[j] = std::abs(first) + std::abs(old);
      }
      for (std::int64_t k = 0; k < c.k; ++k) {
        const double left = c.a_turned ? o.a.at(k, i) : o.a.at(i, k);
        for (std::int64_t j = 0; j < c.n; ++j) {
          const double term = left * (c.b_turned ? o.b.at(j, k) : o.b.at(k, j));
          row[j] += term;
          row_size[j] += std::abs(term);
        }
      }
    }
  }
};

void expect_right(const Case& c, const Loops& inner, const Sums& expected) {
  Operands o(c);
  run_part(c, o, inner, {0, c.m, 0, c.n});
  const double unit = c.out == Type::f32 ? 0 : c.out == Type::bf16 ? 1.0 / 256 : 1.0 / 2048;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      const auto at = std::size_t(i * c.n + j);
      // A chain of k roundings, each at most half a unit of the sum so far and in practice far fewer; then
      // the store.
      const double allowed = expected.size[at] * 2e-6 + std::abs(expected.sum[at]) * unit;
      ASSERT_NEAR(o.out.at(i, j), expected.sum[at], allowed) << i << ", " << j;
    }
  }
}

class OwnProduct : public ::testing::TestWithParam<Case> {};

TEST_P(OwnProduct, is_the_sum_of_products_in_every_instruction_set) {
  const Sums expected(GetParam());
  for (const InstructionSet set : fast::all_here()) {
    SCOPED_TRACE(fast::name(set));
    expect_right(GetParam(), product::loops(set), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, OwnProduct,
    ::testing::Values(Case{1, 1, 1}, Case{16, 16, 16}, Case{7, 65, 3}, Case{6, 64, 384},
                      Case{13, 96, 385, Type::f32, Type::f32, true},
                      Case{35, 70, 800, Type::f32, Type::f32, false, true},
                      Case{300, 130, 100, Type::f32, Type::f32, true, true},
                      Case{8, 64, 1700, Type::f32, Type::f32, false, false, true, true},
                      Case{260, 24, 1601, Type::f32, Type::f32, true, false, true, true, 1, 2},
                      Case{9, 33, 770, Type::bf16, Type::bf16, false, true, false, true},
                      Case{261, 80, 77, Type::bf16, Type::f32, true, false, true},
                      Case{290, 50, 401, Type::bf16, Type::bf16, true, true, true, true, 1, 2},
                      Case{31, 48, 90, Type::f16, Type::f16, false, false, false, true},
                      Case{270, 17, 33, Type::f16, Type::f32, true, true},
                      Case{40, 100, 64, Type::f32, Type::f32, false, true, false, true},
                      Case{300, 100, 500, Type::bf16, Type::bf16, false, false, false, false, 1, 2},
                      Case{50, 80, 800, Type::f32, Type::f32, false, true, false, true, 8},
                      Case{260, 90, 96, Type::bf16, Type::bf16, true, false, true, true, 8, 2},
                      Case{20, 70, 3200, Type::f32, Type::f32, false, false, true, false, 4},
                      Case{130, 99, 1700, Type::f32, Type::f32, false, true, true, false, 1, 2},
                      Case{70, 200, 500, Type::bf16, Type::bf16, true, true, true, false, 1, 2},
                      Case{20, 1030, 1023, Type::f32, Type::f32, false, false, false, true, 1, 2},
                      Case{130, 200, 900, Type::f32, Type::f32, false, false, true, false, 1, 3},
                      Case{100, 1022, 40, Type::f32, Type::f32, false, false, false, true, 1, 2},
                      Case{500, 140, 900, Type::f32, Type::f32, false, false, false, false, 1, 2},
                      Case{600, 130, 1000, Type::f32, Type::f32, true, false, true, true, 1, 2},
                      Case{400, 70, 850, Type::f32, Type::f32, false, true, false, true},
                      Case{150, 40, 5000, Type::f32, Type::f32, false, true, false, true, 1, 2},
                      Case{12, 20, 9, Type::f32, Type::f32, false, false, false, false, 3},
                      Case{3, 300, 400, Type::bf16, Type::bf16, false, true, false, true, 1, 3},
                      Case{5, 290, 333, Type::f32, Type::f32, false, true, true, false, 1, 2},
                      Case{1, 500, 700, Type::f16, Type::f32, false, true, false, true, 1, 2}));

/// A product whose rows are few and whose second operand is read where it lies.
Case few_rows() {
  const auto flag = [] { return *rc::gen::arbitrary<bool>(); };
  Case c{.m = *rc::gen::inRange<std::int64_t>(1, most_few + 1),
         .n = *rc::gen::inRange(1, 150),
         .k = *rc::gen::inRange<std::int64_t>(least_few, 1300)};
  c.type = *rc::gen::element(Type::f32, Type::bf16, Type::f16);
  c.out = flag() ? Type::f32 : c.type;
  c.b_turned = true;
  c.accumulate = flag();
  c.bias = !c.accumulate && flag();
  c.threads = *rc::gen::element(1, 2, 5);
  return c;
}

TEST(FewRows, are_sums_of_products_in_every_instruction_set) {
  EXPECT_TRUE(rc::check([] {
    const Case c = few_rows();
    const Sums expected(c);
    for (const InstructionSet set : fast::all_here()) {
      expect_right(c, product::loops(set), expected);
      RC_ASSERT(!::testing::Test::HasFatalFailure());
    }
  }));
}

TEST(FewRows, leave_what_lies_between_the_rows_of_the_result) {
  const Case c{.m = 8, .n = 37, .k = 100, .b_turned = true};
  Operands o(c);
  ASSERT_GT(o.out.row, c.n);
  const std::vector<float> before = o.out.floats;
  run_part(c, o, product::loops(fast::best_here()), {0, c.m, 0, c.n});
  for (std::int64_t i = 0; i < c.m; ++i)
    for (auto j = std::size_t(i * o.out.row + c.n); j < std::size_t((i + 1) * o.out.row); ++j)
      EXPECT_EQ(o.out.floats[j], before[j]) << i;
}

/// The bits of out after a product made of parts.
std::vector<std::uint32_t> bits(const Case& c, std::int64_t rows, std::int64_t columns,
                                InstructionSet set = fast::best_here()) {
  Operands o(c);
  for (std::int64_t i = 0; i < c.m; i += rows)
    for (std::int64_t j = 0; j < c.n; j += columns)
      run_part(c, o, product::loops(set), {i, std::min(rows, c.m - i), j, std::min(columns, c.n - j)});
  std::vector<std::uint32_t> all;
  for (std::int64_t i = 0; i < c.m; ++i)
    for (std::int64_t j = 0; j < c.n; ++j) all.push_back(std::bit_cast<std::uint32_t>(o.out.at(i, j)));
  return all;
}

TEST(OwnProduct, has_the_same_bits_however_rows_and_columns_are_cut) {
  EXPECT_TRUE(rc::check([] {
    const auto flag = [] { return *rc::gen::arbitrary<bool>(); };
    Case c{.m = *rc::gen::element<std::int64_t>(1, 5, 30, 130, 262),
           .n = *rc::gen::inRange(1, 150),
           .k = 8 * *rc::gen::inRange(1, 70)};
    c.type = *rc::gen::element(Type::f32, Type::bf16, Type::f16);
    c.out = flag() ? Type::f32 : c.type;
    c.a_turned = flag();
    c.b_turned = flag();
    c.accumulate = flag();
    c.bias = flag();
    c.slabs = *rc::gen::element(1, 1, 2, 8);
    const auto whole = bits(c, c.m, c.n);
    const std::int64_t rows = *rc::gen::inRange<std::int64_t>(std::max<std::int64_t>(1, c.m / 4), c.m + 1);
    const std::int64_t columns = *rc::gen::inRange<std::int64_t>(std::max<std::int64_t>(1, c.n / 4), c.n + 1);
    c.threads = *rc::gen::element(1, 2, 5);
    RC_ASSERT(bits(c, rows, columns) == whole);
  }));
}

TEST(OwnProduct, has_the_same_bits_one_element_at_a_time) {
  for (const int slabs : {1, 8}) {
    Case c{.m = 13, .n = 35, .k = 1600, .bias = true, .slabs = slabs};
    EXPECT_EQ(bits(c, 1, 1), bits(c, 13, 35));
  }
}

TEST(FewRows, have_the_bits_that_they_have_among_many) {
  EXPECT_TRUE(rc::check([] {
    Case c = few_rows();
    const std::int64_t few = c.m;
    c.m = 2 * most_few + 1;
    for (const InstructionSet set : fast::all_here())
      RC_ASSERT(bits(c, few, c.n, set) == bits(c, c.m, c.n, set));
  }));
}

TEST(OwnProduct, adds_slabs_as_a_balanced_tree) {
  // Large numbers that cancel within a half of the tree, and small ones that a sum in order would lose.
  const float big = 0x1p25F;
  std::vector<float> a = {big, 1, 1, -big};
  std::vector<float> b = {1, 1, 1, 1};
  float out = 0;
  Problem p{.m = 1, .n = 1, .k = 4, .a = {a.data(), Type::f32, 4}, .b = {b.data(), Type::f32, 1}};
  p.out = {&out, Type::f32, false};
  p.out_row = 1;
  p.slabs = 4;
  std::vector<float> workspace(std::size_t(plan(p.form(), 1).bytes() / 4));
  product::run(p, product::loops(InstructionSet::generic), 1, workspace.data());
  EXPECT_EQ(out, (big + 1) + (1 - big));
}

TEST(ProductPlan, cuts_k_by_k_alone) {
  for (const std::int64_t k : {1, 384, 385, 1536, 2000, 16384}) {
    const Plan small = plan({.m = 1, .n = 1, .k = k}, 1);
    const Plan large = plan({.m = 8192, .n = 50304, .k = k, .a_lies = false, .bias = true}, 64);
    EXPECT_EQ(small.part, large.part);
    EXPECT_LE(small.part, 384);
  }
}

TEST(ProductPlan, reads_the_second_operand_where_it_lies_for_few_rows_alone) {
  const Form few{.m = most_few, .n = 5000, .k = least_few, .may_turn = true, .may_be_few = true};
  EXPECT_TRUE(plan(few, 2).few);
  EXPECT_EQ(plan(few, 2).bytes(), 0);
  Form more = few, shorter = few, other = few;
  ++more.m;
  --shorter.k;
  other.may_be_few = false;
  for (const Form& form : {more, shorter, other}) EXPECT_FALSE(plan(form, 2).few);
}

TEST(ProductPlan, takes_no_less_for_a_deeper_product) {
  // Where fewer rows, a multiple of six, fit beside each other the deeper they are.
  for (std::int64_t k = 1; k < 1536; ++k) {
    const Form f{.m = 1651, .n = 1, .k = k, .a_lies = false, .direct = false};
    Form deeper = f;
    ++deeper.k;
    ASSERT_LE(plan(f, 1).bytes(), plan(deeper, 1).bytes()) << k;
  }
}

TEST(ProductPlan, bounds_what_groups_can_take) {
  EXPECT_TRUE(rc::check([] {
    const bool sums_rows = *rc::gen::arbitrary<bool>();
    const std::int64_t rows = *rc::gen::inRange(1, 3000);
    const std::int64_t some = *rc::gen::inRange<std::int64_t>(1, rows + 1);
    Form f{.m = *rc::gen::inRange(1, 2000), .n = *rc::gen::inRange(1, 3000), .k = *rc::gen::inRange(1, 5000)};
    f.a_lies = !sums_rows && *rc::gen::arbitrary<bool>();
    f.direct = *rc::gen::arbitrary<bool>();
    f.may_turn = *rc::gen::arbitrary<bool>();
    f.may_be_few = f.may_turn && !sums_rows;
    f.b_lies = *rc::gen::arbitrary<bool>();
    const int threads = *rc::gen::inRange(1, 9);
    (sums_rows ? f.k : f.m) = rows;
    const std::int64_t bound = grouped_bytes(f, sums_rows, threads);
    (sums_rows ? f.k : f.m) = some;
    RC_ASSERT(plan(f, threads).bytes() <= bound);
  }));
}

}  // namespace
}  // namespace weft::product
