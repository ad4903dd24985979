// Walks over the result: groups of k, then stretches of rows, then items for the threads.
#include "weft/backend/cpu/product/run.h"

#include <omp.h>

#include <algorithm>
#include <utility>

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
  m.from = static_cast<const char*>(m.from) + (row * m.row + column) * size_of(m.type);
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

struct Block {
  Rows rows;
  std::int64_t first, count;
};

class Walk {
 public:
  Walk(const Problem& problem, const Loops& loops, const Plan& plan, float* workspace)
      : p_(problem), loops_(loops), plan_(plan), panels_(workspace) {
    shared_rows_ = panels_ + plan.shared_panels;
    bias_ = shared_rows_ + plan.shared_rows;
    own_ = bias_ + plan.bias;
  }

  void run() {
    if (p_.has_bias) widen_bias(plan_.turned ? p_.m : p_.n);
    for (k0_ = 0; k0_ < p_.k; k0_ += plan_.group) {
      depth_ = std::min(plan_.group, p_.k - k0_);
      if (plan_.shared_panels > 0) copy_shared_panels();
      for (i0_ = 0; i0_ < p_.m; i0_ += plan_.stretch) {
        height_ = std::min(plan_.stretch, p_.m - i0_);
        if (plan_.shared_rows > 0) copy_shared_rows();
        if (plan_.by_panels)
          multiply_by_panels();
        else
          multiply_by_rows();
      }
    }
  }

 private:
  void widen_bias(std::int64_t count) {
    const Matrix bias{p_.bias.from, p_.bias.type, 0};
    for (std::int64_t j = 0; j < count; j += panel)
      loops_.panel_from_rows(bias_ + j, at(bias, 0, j), 1, std::min(count - j, panel));
  }

  float* own(int thread) const { return own_ + thread * plan_.own(); }
  float* own_panel(int thread) const { return own(thread) + plan_.own_rows; }
  float* own_tiles(int thread) const { return own_panel(thread) + plan_.own_panel; }

  void copy_shared_panels() {
    const std::int64_t parts = divide(depth_, plan_.part);
    share_out(divide(p_.n, panel) * parts, plan_.threads, [&](std::int64_t i, int) {
      const std::int64_t j = i / parts * panel, k = i % parts * plan_.part;
      copy_panel(loops_, panels_ + j * depth_ + k * panel, p_.b, p_.b_turned, k0_ + k,
                 std::min(plan_.part, depth_ - k), j, std::min(panel, p_.n - j));
    });
  }

  void copy_shared_rows() {
    const std::int64_t some = 16 * six;
    share_out(divide(height_, some), plan_.threads, [&](std::int64_t i, int) {
      const std::int64_t count = std::min(some, height_ - i * some);
      copy_rows(shared_rows_ + i * some * depth_, i0_ + i * some, count);
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

  Rows rows_where_they_lie(std::int64_t first) const {
    return {static_cast<const float*>(at(p_.a, first, k0_).from), p_.a.row, six * p_.a.row};
  }

  /// Threads share out panels, and where these are few a stretch of rows too.
  void multiply_by_panels() {
    const std::int64_t panels = divide(p_.n, panel);
    const std::int64_t sixes = divide(height_, six);
    const std::int64_t items = std::min(plan_.items, sixes);
    share_out(divide(panels, plan_.panels) * items, plan_.threads, [&](std::int64_t i, int thread) {
      const std::int64_t first = i / items * plan_.panels, item = i % items;
      const std::int64_t count = std::min(plan_.panels, panels - first);
      if (!p_.packed) copy_own_panels(first, count, thread);
      const std::int64_t end = std::min(sixes * (item + 1) / items * six, height_);
      for (std::int64_t from = sixes * item / items * six; from < end; from += plan_.rows) {
        const Rows a =
            plan_.shared_rows > 0 ? copied(shared_rows_ + from * depth_) : rows_where_they_lie(i0_ + from);
        const Block block{a, i0_ + from, std::min(plan_.rows, end - from)};
        for (std::int64_t j = 0; j < count; ++j) {
          const float* b = p_.packed ? packed_panel(first + j) : own_panel(thread) + j * depth_ * panel;
          multiply_panel(block, b, (first + j) * panel, thread);
        }
      }
    });
  }

  void copy_own_panels(std::int64_t first, std::int64_t count, int thread) {
    for (std::int64_t j = 0; j < count; ++j)
      copy_panel(loops_, own_panel(thread) + j * depth_ * panel, p_.b, p_.b_turned, k0_, depth_,
                 (first + j) * panel, std::min(panel, p_.n - (first + j) * panel));
  }

  const float* packed_panel(std::int64_t j) const {
    if (plan_.shared_panels > 0) return panels_ + j * panel * depth_;
    return static_cast<const float*>(p_.b.from) + (j * p_.k + k0_) * panel;
  }

  /// Threads share out blocks of rows, and where these are few the panels too.
  void multiply_by_rows() {
    const std::int64_t blocks = divide(height_, plan_.rows);
    const std::int64_t panels = divide(p_.n, panel);
    const std::int64_t items = std::min(plan_.items, panels);
    share_out(blocks * items, plan_.threads, [&](std::int64_t i, int thread) {
      const std::int64_t first = i / items * plan_.rows;
      const std::int64_t count = std::min(plan_.rows, p_.m - first);
      const bool copies = plan_.own_rows > 0;
      if (copies) copy_rows(own(thread), first, count);
      const Block block{copies ? copied(own(thread)) : rows_where_they_lie(first), first, count};
      const std::int64_t item = i % items;
      for (std::int64_t j = panels * item / items; j < panels * (item + 1) / items; ++j)
        if (plan_.turned)
          multiply_turned(block, packed_panel(j), j * panel, thread);
        else
          multiply_panel(block, packed_panel(j), j * panel, thread);
    });
  }

  /// A block of rows and a panel of so many columns, with no result yet.
  static Stripe stripe(const Block& block, const float* b, std::int64_t columns) {
    Stripe s{};
    s.row = block.rows.row;
    s.next_six = block.rows.next_six;
    s.rows = block.count;
    s.b = b;
    s.columns = (columns + 15) / 16 * 16;
    return s;
  }

  /// The same where what is computed is the result's transpose: rows of the block are columns of the result.
  void multiply_turned(const Block& block, const float* b, std::int64_t j, int thread) {
    const auto& [a, first, count] = block;
    const std::int64_t columns = std::min(panel, p_.n - j);
    char* out = static_cast<char*>(p_.out.to) + (j * p_.out_row + first) * size_of(p_.out.type);
    float* tile = own_tiles(thread);
    const bool adds = p_.accumulate || k0_ > 0;
    if (adds)
      loops_.load_turned(tile, {out, p_.out.type, p_.out_row}, count, columns);
    else if (p_.has_bias)
      loops_.fill_rows(tile, bias_ + first, count);
    Stripe s = stripe(block, b, columns);
    s.c = tile;
    s.c_row = panel;
    s.add = adds || p_.has_bias;
    multiply_depth(s, a, 0, depth_);
    loops_.store_turned({out, p_.out.type, false}, p_.out_row, tile, count, columns);
  }

  /// `b`: the panel of the columns from j on, this group's k of it
  void multiply_panel(const Block& block, const float* b, std::int64_t j, int thread) {
    const auto& [a, first, count] = block;
    const std::int64_t columns = std::min(panel, p_.n - j);
    Stripe s = stripe(block, b, columns);
    char* out = static_cast<char*>(p_.out.to) + (first * p_.out_row + j) * size_of(p_.out.type);
    const bool adds = p_.accumulate || k0_ > 0;
    const float* bias = p_.has_bias && k0_ == 0 ? bias_ + j : nullptr;
    if (p_.slabs == 1 && p_.out.type == fast::Type::f32 && columns % 16 == 0) {
      s.c = reinterpret_cast<float*>(out);
      s.c_row = p_.out_row;
      s.bias = bias;
      s.add = adds;
      multiply_depth(s, a, 0, depth_);
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
      multiply_depth(s, a, 0, depth_);
    } else {
      multiply_slabs(s, a, tiles);
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
  void multiply_slabs(Stripe& s, const Rows& a, float* tiles) const {
    const std::int64_t tile = plan_.rows * panel;
    const std::int64_t deep = p_.k / p_.slabs;
    int waiting = 0;
    for (int slab = 0; slab < p_.slabs; ++slab) {
      s.c = tiles + waiting * tile;
      s.bias = nullptr;
      s.add = false;
      multiply_depth(s, a, slab * deep, deep);
      ++waiting;
      for (int ones = slab + 1; ones % 2 == 0; ones /= 2, --waiting)
        loops_.add_tile(tiles + (waiting - 2) * tile, tiles + (waiting - 1) * tile, s.rows * panel);
    }
    for (; waiting > 1; --waiting)
      loops_.add_tile(tiles + (waiting - 2) * tile, tiles + (waiting - 1) * tile, s.rows * panel);
  }

  /// k from `from` on (counted within the group), part by part
  void multiply_depth(Stripe& s, const Rows& a, std::int64_t from, std::int64_t depth) const {
    const float* b = s.b;
    for (std::int64_t k = from; k < from + depth; k += plan_.part) {
      s.k = std::min(plan_.part, from + depth - k);
      s.a = a.k(k);
      s.b = b + k * panel;
      loops_.multiply(s);
      s.bias = nullptr;
      s.add = true;
    }
    s.b = b;
  }

  Problem p_;
  const Loops& loops_;
  const Plan& plan_;
  float* panels_;
  float* shared_rows_;
  float* bias_;
  float* own_;
  std::int64_t k0_ = 0, depth_ = 0;   // the group of k in work
  std::int64_t i0_ = 0, height_ = 0;  // the rows in work
};

/// out' = b' a': what lies by rows stays as it lies.
Problem transposed(Problem p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  p.b_turned = !p.a_turned;
  p.a_turned = false;
  return p;
}

}  // namespace

/// Rows a multiple of 4 KiB apart meet in the same places of the caches: copied, if enough panels follow.
constexpr std::int64_t unlucky_row = 1024, worth_copying = 1024;

Form Problem::form() const {
  const bool unlucky = a.row % unlucky_row == 0 && n >= worth_copying;
  return {.m = m,
          .n = n,
          .k = k,
          .a_lies = a.type == fast::Type::f32 && !a_turned && !unlucky,
          .b_lies = b.type == fast::Type::f32 && b_turned,
          .packed = packed,
          .may_turn = b_turned && !packed && slabs == 1 && !(accumulate && has_bias),
          .direct = out.type == fast::Type::f32,
          .bias = has_bias,
          .slabs = slabs};
}

void run(const Problem& problem, const Loops& loops, int threads, float* workspace) {
  const Plan cut = plan(problem.form(), threads);
  Walk(cut.turned ? transposed(problem) : problem, loops, cut, workspace).run();
}

void pack(float* to, Matrix b, bool turned, std::int64_t k, std::int64_t n, const Loops& loops, int threads) {
  share_out(divide(n, panel), threads, [&](std::int64_t i, int) {
    copy_panel(loops, to + i * panel * k, b, turned, 0, k, i * panel, std::min(panel, n - i * panel));
  });
}

}  // namespace weft::product
