// Walks over the result: groups of k, then blocks of columns, then items for the threads.
#include "weft/backend/cpu/product/run.h"

#include <omp.h>

#include <algorithm>

namespace weft::product {
namespace {

std::int64_t divide(std::int64_t a, std::int64_t by) { return (a + by - 1) / by; }

/// body(i, thread) for every i below count; small work never meets OpenMP.
template <class Body>
void share_out(std::int64_t count, int threads, const Body& body) {
  if (threads == 1 || count == 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) body(i, omp_get_thread_num());
}

Matrix at(Matrix m, std::int64_t row, std::int64_t column) {
  const std::int64_t size = m.type == fast::Type::f32 ? 4 : 2;
  m.from = static_cast<const char*>(m.from) + (row * m.row + column) * size;
  return m;
}

/// b[k0 .. k0 + k, j .. j + columns) as a panel
void copy_panel(const Loops& loops, float* to, Matrix b, bool turned, std::int64_t k0, std::int64_t k,
                std::int64_t j, std::int64_t columns) {
  if (turned)
    loops.panel_from_columns(to, at(b, j, k0), k, columns);
  else
    loops.panel_from_rows(to, at(b, k0, j), k, columns);
}

/// Rows of the first operand, ready to be multiplied: where they lie or copied.
struct Rows {
  const float* from;
  std::int64_t row;  // 1 in sixes
  std::int64_t next_six;

  const float* k(std::int64_t k) const { return from + (row == 1 ? k * six : k); }
};

class Walk {
 public:
  Walk(const Problem& problem, const Loops& loops, const Plan& plan, float* workspace)
      : p_(problem), loops_(loops), plan_(plan), panels_(workspace) {
    shared_rows_ = panels_ + plan.panels;
    bias_ = shared_rows_ + plan.shared_rows;
    own_ = bias_ + plan.bias;
  }

  void run() {
    if (p_.has_bias) {
      loops_.panel_from_rows(bias_, {p_.bias.from, p_.bias.type, 0}, 1, std::min(p_.n, panel));
      for (std::int64_t j = panel; j < p_.n; j += panel)
        loops_.panel_from_rows(bias_ + j, at({p_.bias.from, p_.bias.type, 0}, 0, j), 1,
                               std::min(p_.n - j, panel));
    }
    for (k0_ = 0; k0_ < p_.k; k0_ += plan_.group) {
      depth_ = std::min(plan_.group, p_.k - k0_);
      if (plan_.shared_rows > 0) copy_shared_rows();
      for (j0_ = 0; j0_ < p_.n; j0_ += plan_.columns) {
        width_ = std::min(plan_.columns, p_.n - j0_);
        if (plan_.panels > 0) copy_panels();
        multiply();
      }
    }
  }

 private:
  float* own(int thread) const { return own_ + thread * plan_.own(); }
  float* own_panel(int thread) const { return own(thread) + plan_.own_rows; }
  float* own_tiles(int thread) const { return own_panel(thread) + plan_.own_panel; }

  void copy_shared_rows() {
    const std::int64_t some = 4 * six;
    share_out(divide(p_.m, some), plan_.threads, [&](std::int64_t i, int) {
      const std::int64_t count = std::min(some, p_.m - i * some);
      copy_rows(shared_rows_ + i * some * depth_, i * some, count);
    });
  }

  void copy_rows(float* to, std::int64_t first, std::int64_t count) const {
    if (p_.a_turned)
      loops_.sixes(to, at(p_.a, k0_, first), count, depth_);
    else
      loops_.widen(to, at(p_.a, first, k0_), count, depth_);
  }

  Rows copied(const float* from) const {
    return p_.a_turned ? Rows{from, 1, six * depth_} : Rows{from, depth_, six * depth_};
  }

  Rows rows(std::int64_t first, std::int64_t count, int thread) const {
    const bool lies = p_.a.type == fast::Type::f32 && !p_.a_turned;
    if (lies) return {static_cast<const float*>(at(p_.a, first, k0_).from), p_.a.row, six * p_.a.row};
    if (plan_.few_rows) return copied(shared_rows_);
    copy_rows(own(thread), first, count);
    return copied(own(thread));
  }

  void copy_panels() {
    share_out(divide(width_, panel), plan_.threads, [this](std::int64_t i, int) {
      copy_panel(loops_, panels_ + i * panel * depth_, p_.b, p_.b_turned, k0_, depth_, j0_ + i * panel,
                 std::min(panel, width_ - i * panel));
    });
  }

  void multiply() {
    const std::int64_t blocks = divide(p_.m, plan_.rows);
    const std::int64_t panels = divide(width_, panel);
    const std::int64_t items = std::min(plan_.items, panels);
    share_out(blocks * items, plan_.threads, [&](std::int64_t i, int thread) {
      const std::int64_t first = i / items * plan_.rows;
      const std::int64_t count = std::min(plan_.rows, p_.m - first);
      const Rows a = rows(first, count, thread);
      const std::int64_t item = i % items;
      for (std::int64_t j = panels * item / items; j < panels * (item + 1) / items; ++j)
        multiply_panel(a, first, count, j * panel, thread);
    });
  }

  void multiply_panel(const Rows& a, std::int64_t first, std::int64_t count, std::int64_t j, int thread) {
    Stripe s{};
    s.row = a.row;
    s.next_six = a.next_six;
    s.rows = count;
    const std::int64_t columns = std::min(panel, width_ - j);
    const std::int64_t size = p_.out.type == fast::Type::f32 ? 4 : 2;
    char* out = static_cast<char*>(p_.out.to) + (first * p_.out_row + j0_ + j) * size;
    const bool adds = p_.accumulate || k0_ > 0;
    const float* bias = p_.has_bias && k0_ == 0 ? bias_ + j0_ + j : nullptr;
    s.columns = (columns + 15) / 16 * 16;
    if (p_.slabs == 1 && p_.out.type == fast::Type::f32 && columns % 16 == 0) {
      s.c = reinterpret_cast<float*>(out);
      s.c_row = p_.out_row;
      s.bias = bias;
      s.add = adds;
      multiply_depth(s, a, 0, depth_, j, thread);
      return;
    }
    float* tiles = own_tiles(thread);
    const Matrix old{out, p_.out.type, p_.out_row};
    s.c_row = panel;
    if (p_.slabs == 1) {
      if (adds) loops_.load_tile(tiles, old, count, columns);
      s.c = tiles;
      s.bias = bias;
      s.add = adds;
      multiply_depth(s, a, 0, depth_, j, thread);
    } else {
      multiply_slabs(s, a, j, thread);
      if (bias) loops_.add_bias(tiles, bias, count);
      // The tree is whole before it meets what was there.
      if (adds) {
        float* spare = tiles + plan_.rows * panel;
        loops_.load_tile(spare, old, count, columns);
        loops_.add_tile(tiles, spare, count * panel);
      }
    }
    loops_.store_tile({out, p_.out.type, false}, p_.out_row, tiles, count, columns);
  }

  /// A binary counter of partial sums: slabs of equal height are added as soon as both are there.
  void multiply_slabs(Stripe& s, const Rows& a, std::int64_t j, int thread) const {
    float* tiles = own_tiles(thread);
    const std::int64_t tile = plan_.rows * panel;
    const std::int64_t deep = p_.k / p_.slabs;
    int waiting = 0;
    for (int slab = 0; slab < p_.slabs; ++slab) {
      s.c = tiles + waiting * tile;
      s.bias = nullptr;
      s.add = false;
      multiply_depth(s, a, slab * deep, deep, j, thread);
      ++waiting;
      for (int ones = slab + 1; ones % 2 == 0; ones /= 2, --waiting)
        loops_.add_tile(tiles + (waiting - 2) * tile, tiles + (waiting - 1) * tile, s.rows * panel);
    }
    for (; waiting > 1; --waiting)
      loops_.add_tile(tiles + (waiting - 2) * tile, tiles + (waiting - 1) * tile, s.rows * panel);
  }

  /// k from `from` on (counted within the group), part by part
  void multiply_depth(Stripe& s, const Rows& a, std::int64_t from, std::int64_t depth, std::int64_t j,
                      int thread) const {
    for (std::int64_t k = from; k < from + depth; k += plan_.part) {
      s.k = std::min(plan_.part, from + depth - k);
      s.a = a.k(k);
      s.b = panel_at(j, k, s.k, thread);
      loops_.multiply(s);
      s.bias = nullptr;
      s.add = true;
    }
  }

  const float* panel_at(std::int64_t j, std::int64_t k, std::int64_t depth, int thread) const {
    if (p_.packed) return static_cast<const float*>(p_.b.from) + (j0_ + j) * p_.k + (k0_ + k) * panel;
    if (plan_.panels > 0) return panels_ + j * depth_ + k * panel;
    float* to = own_panel(thread);
    copy_panel(loops_, to, p_.b, p_.b_turned, k0_ + k, depth, j0_ + j, std::min(panel, width_ - j));
    return to;
  }

  const Problem& p_;
  const Loops& loops_;
  const Plan& plan_;
  float* panels_;
  float* shared_rows_;
  float* bias_;
  float* own_;
  std::int64_t k0_ = 0, depth_ = 0;  // the group of k in work
  std::int64_t j0_ = 0, width_ = 0;  // the columns in work
};

}  // namespace

Form Problem::form() const {
  return {.m = m,
          .n = n,
          .k = k,
          .a_lies = a.type == fast::Type::f32 && !a_turned,
          .packed = packed,
          .direct = out.type == fast::Type::f32,
          .bias = has_bias,
          .slabs = slabs};
}

void run(const Problem& problem, const Loops& loops, int threads, float* workspace) {
  const Plan cut = plan(problem.form(), threads);
  Walk(problem, loops, cut, workspace).run();
}

void pack(float* to, Matrix b, bool turned, std::int64_t k, std::int64_t n, const Loops& loops, int threads) {
  share_out(divide(n, panel), threads, [&](std::int64_t i, int) {
    copy_panel(loops, to + i * panel * k, b, turned, 0, k, i * panel, std::min(panel, n - i * panel));
  });
}

}  // namespace weft::product
