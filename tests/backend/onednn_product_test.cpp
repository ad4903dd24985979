// oneDNN's products have the same bits with any number of threads, and long ones however they are cut.
#include <gtest/gtest.h>

#include <ostream>
#include <vector>

#include "weft/backend/cpu/onednn/engine.h"
#include "weft/base/half.h"
#include "weft/base/random.h"

namespace weft::product {
namespace {

using fast::Type;

/// Numbers of any type, and floats for workspace, from a multiple of 64 bytes on.
class Bytes {
 public:
  explicit Bytes(std::int64_t size) : floats_(std::size_t(size / 4 + 32)) {}
  float* data() {
    const auto ahead = -reinterpret_cast<std::intptr_t>(floats_.data()) & 63;
    return floats_.data() + ahead / std::intptr_t(sizeof(float));
  }
  void fill(Type type, std::int64_t count, std::uint64_t seed) {
    std::vector<float> values(static_cast<std::size_t>(count));
    fill_uniform(Draw({.seed = seed, .purpose = Purpose::test}), 0, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float x = values[i] - 0.5F;
      if (type == Type::f32) data()[i] = x;
      if (type == Type::bf16) reinterpret_cast<bf16*>(data())[i] = bf16(x);
    }
  }

 private:
  std::vector<float> floats_;
};

struct Case {
  std::int64_t m, n, k;
  Type type = Type::bf16, out = Type::bf16;
  bool a_turned = false, b_turned = false, accumulate = false, bias = false;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.m << "x" << c.n << "x" << c.k << " types " << int(c.type) << int(c.out) << " turned "
       << c.a_turned << c.b_turned << " accumulate " << c.accumulate << " bias " << c.bias;
}

struct Box {
  std::int64_t i, m, j, n;
};

class Multiplied {
 public:
  explicit Multiplied(const Case& c)
      : c_(c), a_(c.m * c.k * 4), b_(c.k * c.n * 4), bias_(c.n * 4), out_(c.m * c.n * 4) {
    a_.fill(c.type, c.m * c.k, 1);
    b_.fill(c.type, c.k * c.n, 2);
    bias_.fill(c.type, c.n, 3);
  }

  void compute(Engine& engine, const Box& box, int threads) {
    const Problem p = problem(box);
    Bytes workspace(engine.bytes(p, threads));
    engine.run(p, threads, workspace.data());
  }
  /// All bits of the result after it was computed box by box.
  std::vector<char> of_boxes(Engine& engine, const std::vector<Box>& boxes, int threads) {
    out_.fill(c_.out, c_.m * c_.n, 4);
    for (const Box& box : boxes) compute(engine, box, threads);
    const char* from = reinterpret_cast<const char*>(out_.data());
    return {from, from + c_.m * c_.n * size_of(c_.out)};
  }
  std::vector<char> whole(Engine& engine, int threads) {
    return of_boxes(engine, {{0, c_.m, 0, c_.n}}, threads);
  }

  Problem problem(const Box& box) {
    const auto at = [](Bytes& bytes, Type type, std::int64_t element) {
      return reinterpret_cast<char*>(bytes.data()) + element * size_of(type);
    };
    Problem p{.m = box.m, .n = box.n, .k = c_.k, .a_turned = c_.a_turned, .b_turned = c_.b_turned};
    p.a = {at(a_, c_.type, box.i * (c_.a_turned ? 1 : c_.k)), c_.type, c_.a_turned ? c_.m : c_.k};
    p.b = {at(b_, c_.type, box.j * (c_.b_turned ? c_.k : 1)), c_.type, c_.b_turned ? c_.k : c_.n};
    p.out = {at(out_, c_.out, box.i * c_.n + box.j), c_.out, false};
    p.out_row = c_.n;
    p.accumulate = c_.accumulate;
    p.has_bias = c_.bias;
    if (c_.bias) p.bias = {at(bias_, c_.type, box.j), c_.type};
    return p;
  }

 private:
  Case c_;
  Bytes a_, b_, bias_, out_;
};

class OneDnnProduct : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!engine) GTEST_SKIP() << "this build has no oneDNN";
    const Case& c = GetParam();
    if (!engine->takes(Multiplied(c).problem({0, c.m, 0, c.n})))
      GTEST_SKIP() << "on this processor oneDNN has no such product";
  }
  std::shared_ptr<Engine> engine = open_onednn();
};

class OneDnnThreads : public OneDnnProduct {};

TEST_P(OneDnnThreads, do_not_change_a_bit) {
  Multiplied product(GetParam());
  const std::vector<char> one = product.whole(*engine, 1);
  // Falling: clang 14's OpenMP loses a little memory where a team grows.
  for (const int threads : {7, 4, 3, 2}) EXPECT_EQ(product.whole(*engine, threads) == one, true) << threads;
}

constexpr Type f32 = Type::f32, bf16s = Type::bf16;

INSTANTIATE_TEST_SUITE_P(
    Forms, OneDnnThreads,
    ::testing::Values(Case{300, 500, 2048, bf16s, bf16s, false, true}, Case{130, 517, 2100, bf16s, bf16s},
                      Case{400, 129, 1025, bf16s, f32, true, false, true},
                      Case{65, 1030, 4096, bf16s, bf16s, false, true, false, true},
                      Case{70, 66, 4099, bf16s, f32, true, true, true},
                      Case{90, 640, 3072, bf16s, bf16s, true, true, false, true},
                      Case{1, 1000, 4096, bf16s, bf16s, false, true, false, true},
                      Case{1, 1000, 768, bf16s, bf16s, false, true}, Case{1, 1000, 3000, bf16s, bf16s},
                      Case{1000, 1, 3000, bf16s, bf16s, true, false}, Case{700, 3, 4096, bf16s, bf16s},
                      Case{700, 1, 1024, bf16s, f32, false, true, true}, Case{2, 900, 768, bf16s, bf16s},
                      Case{17, 800, 1000, bf16s, bf16s, false, true, false, true},
                      Case{800, 30, 900, bf16s, f32, true, false, true}, Case{5, 7, 64, bf16s, bf16s},
                      Case{64, 64, 1024, bf16s, bf16s, false, true}, Case{256, 700, 768, bf16s, bf16s},
                      Case{300, 500, 2048, f32, f32, false, true},
                      Case{130, 517, 2100, f32, f32, false, false, true},
                      Case{400, 129, 1025, f32, f32, true, false, false, true},
                      Case{1, 600, 4096, f32, f32, false, true}, Case{30, 300, 768, f32, f32, true, true},
                      Case{700, 3, 2100, f32, f32, false, true}));

INSTANTIATE_TEST_SUITE_P(AddedTo, OneDnnThreads,
                         ::testing::Values(Case{256, 176, 949, bf16s, f32, false, false, true},
                                           Case{151, 797, 735, bf16s, f32, false, false, true},
                                           Case{289, 355, 500, bf16s, f32, true, false, true},
                                           Case{200, 300, 512, bf16s, f32, true, false, true}));

class OneDnnTiles : public OneDnnProduct {};

TEST_P(OneDnnTiles, have_the_same_bits_however_rows_and_columns_are_cut) {
  const Case& c = GetParam();
  Multiplied product(c);
  const std::vector<char> whole = product.whole(*engine, 2);
  for (const std::int64_t i : {std::int64_t(2), c.m / 2, c.m - 3})
    EXPECT_EQ(product.of_boxes(*engine, {{0, i, 0, c.n}, {i, c.m - i, 0, c.n}}, 2) == whole, true)
        << "row " << i;
  for (const std::int64_t j : {std::int64_t(2), c.n / 2, c.n - 3})
    EXPECT_EQ(product.of_boxes(*engine, {{0, c.m, 0, j}, {0, c.m, j, c.n - j}}, 2) == whole, true)
        << "column " << j;
}

INSTANTIATE_TEST_SUITE_P(Forms, OneDnnTiles,
                         ::testing::Values(Case{300, 500, 2048, bf16s, bf16s, false, true},
                                           Case{130, 517, 2100, bf16s, bf16s},
                                           Case{400, 129, 1025, bf16s, f32, true, false, true},
                                           Case{65, 430, 4096, bf16s, bf16s, false, true, false, true},
                                           Case{70, 66, 4099, bf16s, f32, true, true, true}));

}  // namespace
}  // namespace weft::product
