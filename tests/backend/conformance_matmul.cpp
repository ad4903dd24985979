// Products: shapes that fill tiles and shapes that do not, all transpositions, views, batches, groups, slabs.
#include "tests/backend/conformance_products.h"

namespace weft::conformance {
namespace {

constexpr std::array<Sizes, 8> sizes{{{1, 1, 1},
                                      {1, 17, 5},
                                      {16, 16, 16},
                                      {33, 1, 64},
                                      {7, 50, 129},
                                      {64, 96, 80},
                                      {5, 3, 300},
                                      {130, 66, 48}}};

/// Gaps between rows are legal; gaps between elements are not.
constexpr std::array<Lay, 2> row_lays{Lay::contiguous, Lay::gaps};

TEST_P(Conformance, multiplies_all_forms_of_matrices) {
  for (const Sizes& s : sizes)
    for (const Dtype dtype : floats)
      for (const Read a : {Read::as_is, Read::transposed})
        for (const Read b : {Read::as_is, Read::transposed})
          for (const Lay lay : row_lays) {
            SCOPED_TRACE(told(s, dtype));
            same(
                [&](Desk& desk) {
                  const Tensor left = desk.normal(held(s.m, s.k, a), dtype);
                  const Tensor right = desk.normal(held(s.k, s.n, b), dtype);
                  const Tensor out = desk.blank({s.m, s.n}, dtype);
                  desk.kernels().matmul(out, left, right, {.a = a, .b = b});
                  desk.result("out", out, close(dtype, s.k));
                },
                lay);
          }
}

TEST_P(Conformance, accumulates_products_in_f32) {
  for (const Sizes& s : sizes)
    for (const Dtype dtype : floats)
      for (const Read a : {Read::as_is, Read::transposed}) {
        SCOPED_TRACE(told(s, dtype));
        same(
            [&](Desk& desk) {
              const Tensor left = desk.normal(held(s.m, s.k, a), dtype);
              const Tensor right = desk.normal({s.k, s.n}, dtype);
              const Tensor out = desk.normal({s.m, s.n});
              desk.kernels().matmul(out, left, right, {.a = a, .accumulate = true});
              desk.result("out", out, close(Dtype::f32, s.k));
            },
            Lay::gaps);
      }
}

/// Two walks round once more than one does: what the second reads, or is a factor of.
Tolerance close_however_walked(Dtype dtype, std::int64_t terms) {
  const Tolerance once = close(dtype, terms, 16);
  return {2 * once.relative, once.absolute + once.relative};
}

/// f(sizes, type, activation) for products whose rows are whole vectors, and for others.
void each_activated(const std::function<void(const Sizes&, Dtype, Activation)>& f) {
  for (const Sizes& s : {Sizes{21, 40, 32}, {64, 96, 80}, {7, 50, 129}})
    for (const Dtype dtype : floats)
      for (const Activation activation : {Activation::gelu, Activation::silu}) {
        SCOPED_TRACE(text(told(s, dtype), " ", words(activation)[std::size_t(activation)]));
        f(s, dtype, activation);
      }
}

// By the library where rows are whole vectors, and by two walks elsewhere.
TEST_P(Conformance, multiplies_and_activates) {
  each_activated([&](const Sizes& s, Dtype dtype, Activation f) {
    const Act act = [&](Desk& desk) {
      const Tensor a = desk.normal({s.m, s.k}, dtype), b = desk.normal({s.n, s.k}, dtype, 0.3),
                   bias = desk.normal({s.n}, dtype);
      for (const Tensor& with : {bias, Tensor()}) {
        const Tensor before = desk.blank({s.m, s.n + 8}, dtype).slice(1, 0, s.n),
                     y = desk.blank({s.m, s.n}, dtype);
        desk.kernels().matmul_activated(y, before, a, b, {{.b = Read::transposed, .bias = with}, f});
        desk.result("before", before, close(dtype, s.k));
        desk.result("y", y, close_however_walked(dtype, s.k));
      }
    };
    for (const Lay lay : row_lays) same(act, lay);
  });
}

TEST_P(Conformance, multiplies_on_the_way_back_through_activations) {
  each_activated([&](const Sizes& s, Dtype dtype, Activation f) {
    const Act act = [&](Desk& desk) {
      const Tensor dy = desk.normal({s.m, s.k}, dtype), w = desk.normal({s.k, s.n}, dtype),
                   before = desk.normal({s.m, s.n}, dtype, 2), out = desk.blank({s.m, s.n}, dtype);
      desk.kernels().matmul_derived(out, before, dy, w, {{}, f});
      desk.result("out", out, close_however_walked(dtype, s.k));
    };
    for (const Lay lay : row_lays) same(act, lay);
  });
}

// Sums of rows are added to what is there, a product to that or in its place.
TEST_P(Conformance, adds_what_a_linear_layer_owes) {
  for (const Sizes& s : sizes)
    for (const Dtype dtype : floats)
      for (const bool on_top : {true, false}) {
        SCOPED_TRACE(told(s, dtype));
        const Act act = [&](Desk& desk) {
          const Tensor dy = desk.normal({s.k, s.m}, dtype), x = desk.normal({s.k, s.n}, dtype),
                       dw = on_top ? desk.normal({s.m, s.n}) : desk.blank({s.m, s.n}),
                       db = desk.normal({s.m});
          desk.kernels().weight_gradient({{dw, on_top}, db}, dy, x);
          desk.result("dw", dw, close(Dtype::f32, s.k));
          desk.result("db", db, close(Dtype::f32, s.k));
        };
        for (const Lay lay : row_lays) same(act, lay);
      }
}

// As routers do: tokens by weights, what came of them by weights, and by tokens.
TEST_P(ConformanceInDoubles, multiplies_and_adds) {
  for (const Sizes& s : sizes)
    for (const Dtype dtype : floats)
      for (const Dtype wide : {dtype, Dtype::f64})
        for (const Read a : {Read::as_is, Read::transposed})
          for (const Read b : {Read::as_is, Read::transposed}) {
            SCOPED_TRACE(told(s, dtype));
            same(
                [&](Desk& desk) {
                  const Tensor left = desk.normal(held(s.m, s.k, a), wide);
                  const Tensor right = desk.normal(held(s.k, s.n, b), dtype);
                  const Tensor out = desk.normal({s.m, s.n}, Dtype::f64), bias = desk.normal({s.n});
                  desk.kernels().matmul(out, left, right, {.a = a, .b = b, .bias = bias});
                  desk.kernels().matmul(out, left, right, {.a = a, .b = b, .accumulate = true});
                  desk.result("out", out, {1e-12, 1e-12});
                  if (wide != Dtype::f64) return;
                  const Tensor sum = desk.normal({s.m, s.n});
                  desk.kernels().matmul(sum, left, right, {.a = a, .b = b, .accumulate = true});
                  desk.result("sum", sum, {2e-7, 2e-7});
                },
                Lay::gaps);
          }
}

TEST_P(Conformance, adds_a_bias_of_any_type_to_products) {
  for (const Dtype dtype : floats)
    for (const Dtype bias : {dtype, Dtype::f32})
      same([&](Desk& desk) {
        const Tensor x = desk.normal({9, 40}, dtype);
        const Tensor w = desk.normal({21, 40}, dtype);
        const Tensor out = desk.blank({9, 21}, dtype);
        desk.kernels().matmul(out, x, w, {.b = Read::transposed, .bias = desk.normal({21}, bias)});
        desk.result("out", out, close(dtype, 40));
      });
}

TEST_P(Conformance, multiplies_long_sums) {
  // The weight gradient's form is where libraries split k among threads.
  for (const Dtype dtype : floats)
    for (const Read a : {Read::as_is, Read::transposed})
      same([&](Desk& desk) {
        const Tensor left = desk.normal(held(24, 4100, a), dtype);
        const Tensor right = desk.normal({4100, 20}, dtype);
        const Tensor out = desk.blank({24, 20});
        desk.kernels().matmul(out, left, right, {.a = a});
        desk.result("out", out, close(Dtype::f32, 4100));
      });
}

TEST_P(Conformance, multiplies_batches) {
  for (const Dtype dtype : floats)
    for (const Read a : {Read::as_is, Read::transposed})
      for (const Read b : {Read::as_is, Read::transposed})
        same(
            [&](Desk& desk) {
              const Tensor left = desk.normal(held(3, 10, 24, a), dtype);
              const Tensor right = desk.normal(held(3, 24, 18, b), dtype);
              const Tensor out = desk.blank({3, 10, 18}, dtype);
              desk.kernels().matmul(out, left, right, {.a = a, .b = b});
              desk.result("out", out, close(dtype, 24));
            },
            Lay::swapped);
}

TEST_P(Conformance, adds_slabs_as_a_tree) {
  for (const Dtype dtype : floats)
    for (const bool accumulate : {false, true})
      same([&](Desk& desk) {
        const Tensor x = desk.normal({12, 64}, dtype);
        const Tensor w = desk.normal({20, 64}, dtype);
        const Tensor out = desk.normal({12, 20});
        desk.kernels().matmul(out, x, w, {.b = Read::transposed, .accumulate = accumulate, .slabs = 8});
        desk.result("out", out, close(Dtype::f32, 64));
      });
}

TEST_P(Conformance, multiplies_rows_in_groups) {
  const std::vector<std::int64_t> offsets{0, 5, 5, 6, 30};
  for (const Dtype dtype : floats)
    for (const Read b : {Read::as_is, Read::transposed})
      same([&](Desk& desk) {
        const Tensor x = desk.normal({30, 24}, dtype);
        const Tensor w = desk.normal(held(4, 24, 16, b), dtype);
        const Tensor out = desk.blank({30, 16}, dtype);
        desk.kernels().grouped_matmul(out, x, w, {offsets}, {.b = b, .bias = desk.normal({4, 16}, dtype)});
        desk.result("out", out, close(dtype, 24));
      });
}

TEST_P(Conformance, multiplies_groups_that_the_host_has_not_seen) {
  const std::vector<std::int64_t> offsets{0, 5, 5, 6, 30};
  for (const Dtype dtype : floats)
    same([&](Desk& desk) {
      const Groups groups = unseen(desk, offsets, dtype);
      const Tensor x = desk.normal({30, 24}, dtype), y = desk.normal({30, 16}, dtype);
      const Tensor out = desk.blank({30, 16}, dtype), gradient = desk.blank({4, 24, 16});
      desk.kernels().grouped_matmul(out, x, desk.normal({4, 24, 16}, dtype), groups, {});
      desk.result("out", out, close(dtype, 24));
      desk.kernels().grouped_matmul(gradient, x, y, groups, {.a = Read::transposed});
      desk.result("gradient", gradient, close(Dtype::f32, 24));
    });
}

TEST_P(Conformance, gives_weight_gradients_in_groups) {
  const std::vector<std::int64_t> offsets{0, 5, 5, 6, 30};
  for (const Dtype dtype : floats)
    for (const bool accumulate : {false, true})
      same([&](Desk& desk) {
        const Tensor dy = desk.normal({30, 16}, dtype);
        const Tensor x = desk.normal({30, 24}, dtype);
        const Tensor out = accumulate ? desk.normal({4, 16, 24}) : desk.blank({4, 16, 24});
        desk.kernels().grouped_matmul(out, dy, x, {offsets},
                                      {.a = Read::transposed, .accumulate = accumulate});
        desk.result("out", out, close(Dtype::f32, 24));
      });
}

}  // namespace
}  // namespace weft::conformance
