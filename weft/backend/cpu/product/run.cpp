// Walks over the result: groups of k, then stretches of rows, then items for the threads.
#include "weft/backend/cpu/product/run.h"

#include <algorithm>
#include <utility>

#include "weft/backend/cpu/product/few.h"
#include "weft/backend/cpu/product/operands.h"
#include "weft/backend/cpu/product/share_out.h"

namespace weft::product {
namespace {

/// Panels, the rows that they are multiplied by, and what a thread likely reads then.
struct Item {
  std::int64_t panel, panels;
  std::int64_t row, end;
  Next next{};
};

class Walk {
 public:
  Walk(const Problem& problem, const Loops& loops, const Plan& plan, float* workspace)
      : p_(problem), loops_(loops), plan_(plan), operands_(p_, loops, plan_, workspace) {
    bias_ = workspace + plan.shared_panels + plan.shared_rows;
    own_ = bias_ + plan.bias;
  }

  void run() {
    if (p_.has_bias) widen_bias(plan_.turned ? p_.m : p_.n);
    for (std::int64_t k = 0; k < p_.k; k += plan_.group) {
      operands_.take_group(k);
      adds_ = p_.accumulate || k > 0;
      for (i0_ = 0; i0_ < p_.m; i0_ += plan_.stretch) {
        height_ = std::min(plan_.stretch, p_.m - i0_);
        operands_.take_stretch(i0_, height_);
        if (plan_.by_panels)
          multiply_by_panels();
        else
          multiply_by_rows();
      }
    }
  }

 private:
  void widen_bias(std::int64_t count) {
    for (std::int64_t j = 0; j < count; j += panel) {
      const void* from = static_cast<const char*>(p_.bias.from) + j * size_of(p_.bias.type);
      loops_.panel_from_rows(bias_ + j, {from, p_.bias.type, 0}, 1, std::min(count - j, panel));
    }
  }

  float* own(int thread) const { return own_ + thread * plan_.own(); }
  /// The j-th of an item; where all rows are one block, each takes the place of the one before.
  float* own_panel(std::int64_t j, int thread) const {
    return own(thread) + plan_.own_rows + (plan_.one_block() ? 0 : j * operands_.depth() * panel);
  }
  float* own_tiles(int thread) const { return own(thread) + plan_.own_rows + plan_.own_panel; }

  /// Threads share out panels, and where these are few a stretch of rows too.
  void multiply_by_panels() {
    const std::int64_t panels = divide(p_.n, panel), sixes = divide(height_, six);
    const std::int64_t items = std::min(plan_.items, sixes), count = divide(panels, plan_.panels) * items;
    share_out(count, plan_.threads, [&](std::int64_t i, int thread) {
      const std::int64_t first = i / items * plan_.panels, part = i % items;
      Item item{first, std::min(plan_.panels, panels - first), sixes * part / items * six,
                std::min(sixes * (part + 1) / items * six, height_)};
      const std::int64_t then = i + plan_.threads;
      if (then < count) item.next.panel = then / items * plan_.panels;
      multiply_item(item, thread);
    });
  }

  void multiply_item(const Item& item, int thread) {
    const std::int64_t last = item.panel + item.panels - 1;
    for (std::int64_t row = item.row; row < item.end; row += plan_.rows) {
      const bool begins = row == item.row, ends = row + plan_.rows >= item.end;
      Block block = operands_.block(row, std::min(plan_.rows, item.end - row));
      const Next next_block{none, operands_.rows_lie() ? i0_ + row + plan_.rows : none};
      for (std::int64_t j = item.panel; j <= last; ++j) {
        operands_.take_panel(block, j, own_panel(j - item.panel, thread), !begins);
        block.fresh = j == item.panel;
        block.next = ends ? item.next : next_block;
        if (j < last) block.next = {begins ? j + 1 : none, none};
        multiply_panel(block, thread);
      }
    }
  }

  /// Threads share out blocks of rows, and where these are few the panels too.
  void multiply_by_rows() {
    const std::int64_t blocks = divide(height_, plan_.rows), panels = divide(p_.n, panel);
    const std::int64_t items = std::min(plan_.items, panels);
    share_out(blocks * items, plan_.threads, [&](std::int64_t i, int thread) {
      const std::int64_t row = i / items * plan_.rows, part = i % items;
      const std::int64_t first = panels * part / items, end = panels * (part + 1) / items;
      Item item{first, end - first, row, std::min(row + plan_.rows, p_.m)};
      const std::int64_t then = (i + plan_.threads) / items * plan_.rows;
      if (then < p_.m && operands_.rows_lie()) item.next.rows = then;
      if (plan_.turned)
        multiply_turned(item, thread);
      else
        multiply_rows(item, thread);
    });
  }

  void multiply_rows(const Item& item, int thread) {
    const std::int64_t last = item.panel + item.panels - 1;
    Block block = operands_.block(item.row, item.end - item.row, own(thread));
    for (std::int64_t j = item.panel; j <= last; ++j) {
      operands_.take_panel(block, j);
      block.fresh = j == item.panel;
      block.next = j < last ? Next{j + 1, none} : item.next;
      multiply_panel(block, thread);
    }
  }

  /// What is computed is the result's transpose: rows of the block are columns of the result. The rows are
  /// what is much, so a part of them meets all panels before the next part.
  void multiply_turned(const Item& item, int thread) {
    const std::int64_t last = item.panel + item.panels - 1, depth = operands_.depth();
    Block block = operands_.block(item.row, item.end - item.row, own(thread));
    Stripe s = stripe(block);
    const auto tile = [&](std::int64_t j) {
      return own_tiles(thread) + (j - item.panel) * turned_rows * panel;
    };
    for (std::int64_t j = item.panel; j <= last; ++j) begin_turned(block, j, tile(j));
    for (std::int64_t k = 0; k < depth; k += plan_.part)
      for (std::int64_t j = item.panel; j <= last; ++j) {
        operands_.take_panel(block, j);
        block.fresh = j == item.panel;
        block.next = {j + 1, none};
        if (j == last) block.next = k + plan_.part < depth ? Next{item.panel, none, plan_.part} : item.next;
        if (block.next.rows != none) block.next.later = -k;
        s.c = tile(j);
        s.c_row = panel;
        s.add = k > 0 || adds_ || p_.has_bias;
        multiply_part(s, block, k, std::min(plan_.part, depth - k));
      }
    for (std::int64_t j = item.panel; j <= last; ++j) end_turned(block, j, tile(j));
  }

  char* out_turned(const Block& block, std::int64_t j) const {
    return static_cast<char*>(p_.out.to) + (j * panel * p_.out_row + block.first) * size_of(p_.out.type);
  }

  void begin_turned(const Block& block, std::int64_t j, float* tile) {
    const Matrix out{out_turned(block, j), p_.out.type, p_.out_row};
    if (adds_)
      loops_.load_turned(tile, out, block.count, std::min(panel, p_.n - j * panel));
    else if (p_.has_bias)
      loops_.fill_rows(tile, bias_ + block.first, block.count);
  }

  void end_turned(const Block& block, std::int64_t j, const float* tile) {
    loops_.store_turned({out_turned(block, j), p_.out.type, false}, p_.out_row, tile, block.count,
                        std::min(panel, p_.n - j * panel));
  }

  /// A block's rows, with no result and no part of k yet.
  static Stripe stripe(const Block& block) {
    Stripe s{};
    s.row = block.rows.row;
    s.next_six = block.rows.next_six;
    s.rows = block.count;
    return s;
  }

  void multiply_panel(const Block& block, int thread) {
    const std::int64_t count = block.count, columns = block.columns;
    Stripe s = stripe(block);
    char* out =
        static_cast<char*>(p_.out.to) + (block.first * p_.out_row + block.column) * size_of(p_.out.type);
    const float* bias = p_.has_bias && operands_.k0() == 0 ? bias_ + block.column : nullptr;
    if (p_.slabs == 1 && p_.out.type == fast::Type::f32 && columns % 16 == 0) {
      s.c = reinterpret_cast<float*>(out);
      s.c_row = p_.out_row;
      s.bias = bias;
      s.add = adds_;
      multiply_depth(s, block, 0, operands_.depth());
      return;
    }
    float* tiles = own_tiles(thread);
    const Matrix old{out, p_.out.type, p_.out_row};
    s.c_row = panel;
    if (p_.slabs == 1) {
      if (adds_) loops_.load_tile(tiles, old, count, columns);
      s.c = tiles;
      s.bias = bias;
      s.add = adds_;
      multiply_depth(s, block, 0, operands_.depth());
    } else {
      multiply_slabs(s, block, tiles);
      if (bias) loops_.add_bias(tiles, bias, count);
      // The tree is whole before it meets what was there.
      if (adds_) {
        float* spare = tiles + plan_.rows * panel;
        loops_.load_tile(spare, old, count, columns);
        loops_.add_tile(tiles, spare, count * panel);
      }
    }
    loops_.store_tile({out, p_.out.type, false}, p_.out_row, tiles, count, columns);
  }

  /// A binary counter of partial sums: slabs of equal height are added as soon as both are there.
  void multiply_slabs(Stripe& s, const Block& block, float* tiles) const {
    const std::int64_t tile = plan_.rows * panel;
    const std::int64_t deep = p_.k / p_.slabs;
    int waiting = 0;
    for (int slab = 0; slab < p_.slabs; ++slab) {
      s.c = tiles + waiting * tile;
      s.bias = nullptr;
      s.add = false;
      multiply_depth(s, block, slab * deep, deep);
      ++waiting;
      for (int ones = slab + 1; ones % 2 == 0; ones /= 2, --waiting)
        loops_.add_tile(tiles + (waiting - 2) * tile, tiles + (waiting - 1) * tile, s.rows * panel);
    }
    for (; waiting > 1; --waiting)
      loops_.add_tile(tiles + (waiting - 2) * tile, tiles + (waiting - 1) * tile, s.rows * panel);
  }

  /// k from `from` on (counted within the group), part by part
  void multiply_depth(Stripe& s, const Block& block, std::int64_t from, std::int64_t depth) const {
    for (std::int64_t k = from; k < from + depth; k += plan_.part) {
      multiply_part(s, block, k, std::min(plan_.part, from + depth - k));
      s.bias = nullptr;
      s.add = true;
    }
  }

  void multiply_part(Stripe& s, const Block& block, std::int64_t k, std::int64_t count) const {
    operands_.point(s, block, k, count);
    s.columns = (block.columns + 15) / 16 * 16;
    loops_.multiply(s);
  }

  Problem p_;
  const Loops& loops_;
  const Plan& plan_;
  Operands operands_;
  float* bias_;
  float* own_;
  bool adds_ = false;                 // to what is in the result
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

void run(const Problem& problem, const Loops& loops, int threads, float* workspace) {
  const Plan cut = plan(problem.form(), threads);
  if (cut.few) return run_few(problem, loops, cut, workspace);
  Walk(cut.turned ? transposed(problem) : problem, loops, cut, workspace).run();
}

}  // namespace weft::product
