// The operands of a product on their way into the caches: where they lie, copied, or asked for.
#pragma once

#include "weft/backend/cpu/product/run.h"

namespace weft::product {

inline constexpr std::int64_t none = -1;

/// Rows of the first operand, ready to be multiplied: where they lie or copied.
struct OperandRows {
  const float* from;
  std::int64_t row;  // 1 in sixes
  std::int64_t next_six;

  const float* k(std::int64_t k) const { return from + (row == 1 ? k * six : k); }
};

/// What is read after a panel: another one, or the first rows of a block.
struct Next {
  std::int64_t panel = none, rows = none;
  std::int64_t later = 0;  // in k than what is multiplied
};

/// Rows of the result, and the panel that makes so many of its columns.
struct Block {
  OperandRows rows;
  std::int64_t first, count;
  std::int64_t column = 0, columns = 0;  // the panel's
  const float* b = nullptr;              // the panel, this group's k of it
  float* copy = nullptr;                 // b, where the tiles of its first rows are still to copy it
  bool fresh = false;                    // rows come into the caches with this panel
  Next next{};
};

/// Of one group of k at a time.
class Operands {
 public:
  /// `workspace`: shared panels, then shared rows
  Operands(const Problem& problem, const Loops& loops, const Plan& plan, float* workspace);

  /// k from k0 on; copies the panels that all threads share.
  void take_group(std::int64_t k0);
  std::int64_t k0() const { return k0_; }
  std::int64_t depth() const { return depth_; }
  /// Rows from i0 on, so many; copies those that all threads share.
  void take_stretch(std::int64_t i0, std::int64_t rows);

  /// Rows of the stretch.
  Block block(std::int64_t row, std::int64_t count) const;
  /// Any rows, copied to `own` where they must be.
  Block block(std::int64_t first, std::int64_t count, float* own) const;
  bool rows_lie() const;

  /// A panel that is there for all threads.
  void take_panel(Block& block, std::int64_t j) const;
  /// A panel of this thread's own; it `is_there` already, or is copied now or by the block's first tiles.
  void take_panel(Block& block, std::int64_t j, float* own, bool is_there) const;

  /// The block's a and b for so many of k (counted within the group), and what is asked for beside them.
  void point(Stripe& stripe, const Block& block, std::int64_t k, std::int64_t count) const;

 private:
  void copy_rows(float* to, std::int64_t first, std::int64_t count) const;
  OperandRows copied(const float* from) const;
  OperandRows where_they_lie(std::int64_t first) const;
  const float* shared_panel(std::int64_t j) const;
  std::int64_t columns(std::int64_t j) const;
  Ahead ahead(const Next& next, std::int64_t k, std::int64_t count) const;
  Ahead ahead_where_it_lies(std::int64_t j, std::int64_t k, std::int64_t count) const;

  const Problem& p_;
  const Loops& loops_;
  const Plan& plan_;
  float* panels_;
  float* rows_;
  std::int64_t k0_ = 0, depth_ = 0;
  std::int64_t i0_ = 0;
};

}  // namespace weft::product
