// How a product is cut, and the workspace it takes: pure, shared with the device that only counts.
#pragma once

#include <cstdint>

namespace weft::product {

/// What the cut of a product depends on.
struct Form {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_lies = true;       // the first operand is f32 and read as it is: used where it lies
  bool b_lies = false;      // likewise the second, where it is stored transposed
  bool may_turn = false;    // the product can be computed as its transpose
  bool may_be_few = false;  // and, where its rows are few, the second operand be read where it lies
  bool direct = true;       // the result is f32
  bool bias = false;
  int slabs = 1;
};

/// A thread multiplies a block of rows by panels of 64 columns, k part by part. Where panels must be copied,
/// threads share them out, and each is copied, by the thread that needs it, into its second-level cache and
/// used for a whole stretch of rows. Where they are few beside the rows and so copied for
/// all threads, threads share out the blocks of rows.
/// A few rows times weights that lie output by output are computed as the transpose: the weights become the
/// rows, which need no panels, and the few rows the panels. Where they are very few, memory is what a product
/// waits for: the weights are read where they lie, each once. Only part depends on what bits depend on: k and
/// slabs.
struct Plan {
  std::int64_t part = 0;   // of k in one chain of additions
  std::int64_t group = 0;  // of k in one walk over the result, a multiple of part
  bool few = false;        // threads share out columns; nothing below is said but threads and shared_rows
  bool turned = false;     // everything below is said of the transpose
  bool by_panels = false;
  std::int64_t stretch = 0;  // rows in one walk
  std::int64_t rows = 0;     // of a block
  std::int64_t panels = 1;   // by panels: that are copied together and used for one block after another
  std::int64_t items = 0;    // pieces that a block's panels are shared out in; by panels: that a stretch is
  int threads = 1;
  int tiles = 0;  // one for each height of the tree over slabs
  // Floats of workspace, each a multiple of 16: shared, then for each thread.
  std::int64_t shared_panels = 0, shared_rows = 0, bias = 0;
  std::int64_t own_rows = 0, own_panel = 0, own_tiles = 0;

  /// Every row is multiplied by a panel before the next panel.
  bool one_block() const { return stretch <= rows; }
  std::int64_t own() const { return own_rows + own_panel + own_tiles; }
  std::int64_t bytes() const {
    return (shared_panels + shared_rows + bias + threads * own()) * std::int64_t(sizeof(float));
  }
};
Plan plan(const Form& form, int threads);

/// The most that groups of rows can take, whatever their sizes, where the rows of all are form.m (or form.k,
/// where the first operand is transposed and its rows are summed over).
std::int64_t grouped_bytes(Form form, bool sums_rows, int threads);

}  // namespace weft::product
