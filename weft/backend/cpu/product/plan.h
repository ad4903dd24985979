// How a product is cut, and the workspace it takes: pure, shared with the device that only counts.
#pragma once

#include <cstdint>

namespace weft::product {

/// What the cut of a product depends on.
struct Form {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_lies = true;   // the first operand is f32 and read as it is: used where it lies
  bool packed = false;  // the second operand is packed already
  bool direct = true;   // the result is f32
  bool bias = false;
  int slabs = 1;
};

/// A thread multiplies a block of rows by panels of 64 columns, k part by part. Few rows: threads share the
/// panels out, and each is copied by the thread that needs it, into its second-level cache. Many rows: the
/// panels are copied once for all threads, and these share out the rows.
/// Only part depends on what bits depend on: k and slabs.
struct Plan {
  std::int64_t part = 0;   // of k in one chain of additions
  std::int64_t group = 0;  // of k in one walk over the result, a multiple of part
  bool few_rows = false;
  std::int64_t rows = 0;     // of a block
  std::int64_t columns = 0;  // in one walk
  std::int64_t items = 0;    // pieces that a block's panels are shared out in
  int threads = 1;
  int tiles = 0;  // one for each height of the tree over slabs
  // Floats of workspace, each a multiple of 16: shared, then for each thread.
  std::int64_t panels = 0, shared_rows = 0, bias = 0;
  std::int64_t own_rows = 0, own_panel = 0, own_tiles = 0;

  std::int64_t own() const { return own_rows + own_panel + own_tiles; }
  std::int64_t bytes() const {
    return (panels + shared_rows + bias + threads * own()) * std::int64_t(sizeof(float));
  }
};
Plan plan(const Form& form, int threads);

/// The most that groups of rows can take, whatever their sizes, where the rows of all are form.m (or form.k,
/// where the first operand is transposed and its rows are summed over).
std::int64_t grouped_bytes(Form form, bool sums_rows, int threads);

/// A second operand [k, n] in panels.
std::int64_t packed_bytes(std::int64_t k, std::int64_t n);

}  // namespace weft::product
