// The memory that a GPU's kernels work in beside their operands, and what decides how much that is: asked by
// those kernels, and by whoever counts for them in builds that have none (meta/gpu_kernels.h). Knows no CUDA.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weft/backend/cuda/slabs.h"
#include "weft/tensor/f8_blocks.h"

namespace weft::cuda {

/// Whether eight elements of every row lie side by side at 16 bytes. The pool's blocks do.
inline bool whole_vectors(const Tensor& t) {
  bool whole = t.rank() > 0 && t.stride(-1) == 1 && t.offset() * size_of(t.dtype()) % 16 == 0;
  for (int d = 0; d + 1 < t.rank(); ++d) whole = whole && (t.dim(d) == 1 || t.stride(d) % 8 == 0);
  return whole;
}

// ---- products
/// Whether one is in double: its result or an operand is f64.
inline bool in_doubles(const Tensor& out, const Tensor& a, const Tensor& b) {
  return out.dtype() == Dtype::f64 || a.dtype() == Dtype::f64 || b.dtype() == Dtype::f64;
}
/// Whether the device may know the groups of operands alone, and whether a product of them is a call a group:
/// the library's products of f32 are faster, and want sizes that the host knows.
inline bool takes_unseen_groups(Dtype dtype) { return is_half(dtype) || dtype == Dtype::f32; }
inline bool groups_by_calls(Dtype dtype, const Groups& groups) { return !is_half(dtype) && !groups.unseen; }
/// Whether the library adds the bias.
inline bool adds_in_product(const Tensor& bias, const Tensor& out) {
  return !bias || (bias.dtype() == out.dtype() && bias.contiguous());
}
inline std::int64_t depth_of(const Tensor& a, const MatmulArgs& how) {
  return how.a == Read::as_is ? a.dim(-1) : a.dim(-2);
}
/// Whether gelu is worth having in products. From compute capability 9 on, as llm.c has it: on those before a
/// product with gelu takes longer by what the walk would have taken.
inline bool gelu_in_products(Dtype dtype, Activation f, int capability) {
  return is_half(dtype) && f == Activation::gelu && capability >= 9;
}
/// Whether the library multiplies matrices with scales of such blocks on GPUs of a compute capability. What
/// it does not know is widened to bf16, which holds codes under powers of two.
inline bool knows_blocks(F8Blocks blocks, int capability) {
  if (blocks == F8Blocks::whole) return true;
  return capability == (blocks == F8Blocks::lines_of_32 ? 10 : 9);
}
/// Whether the library writes a product of eight bits where it is wanted. What is there already is added in
/// f32: the library rounds a half's product before it adds. Of bf16 it makes no f16.
inline bool scaled_in_place(const Tensor& out, const ScaledArgs& how, bool widened) {
  const std::int64_t unit = f8_unit_of(how.a_blocks);
  const bool fits = out.dim(0) % unit == 0 && out.dim(1) % unit == 0 && whole_vectors(out);
  const bool fused = !how.bias || (is_half(out.dtype()) && adds_in_product(how.bias, out));
  const bool is_made = !(widened && out.dtype() == Dtype::f16);
  return fits && fused && is_made && !(how.accumulate && is_half(out.dtype()));
}
/// Whether the library takes the scale of an operand of eight bits from where it lies.
inline bool scale_lies_well(const Tensor& inverse) {
  return inverse.offset() * size_of(inverse.dtype()) % 16 == 0;
}
inline constexpr std::int64_t scale_space = 8;  // f32, for two of them
/// Of the place that the library works in: it refuses every product that needs one elsewhere.
inline constexpr std::int64_t product_space_alignment = 256;

// ---- sums
/// Blocks at most whose sums, or digits of exact sums, are added last: six on each of 132 multiprocessors.
inline constexpr int most_reducing_blocks = 128, most_exact_blocks = 792;

inline Shape lines_of_columns(const Tensor& dy, bool exact) {
  const std::int64_t width = dy.dim(-1), rows = width == 0 ? 0 : dy.elements() / width;
  return {slabs_of_columns(rows, exact ? width_of_any : width), width};
}
inline Shape lines_of_norm(const Tensor& x) {
  const std::int64_t width = x.dim(-1);
  return {slabs_of_whole_rows(x.elements() / width, width), width};
}

// ---- a loss in one walk
/// As many as leave room for two blocks on a multiprocessor of 228 KiB.
inline constexpr std::int64_t most_held = 55 * 1024, beside_held_row = 128;
/// Shared memory of a block that keeps a row of logits; 0: it cannot, since the row is longer, or no whole
/// vectors of halves.
inline std::int64_t bytes_to_hold_row(const Tensor& logits) {
  const std::int64_t width = logits.dim(-1);
  const bool fits = is_half(logits.dtype()) && whole_vectors(logits) && width % 8 == 0 && width <= most_held;
  return fits ? beside_held_row + 2 * width : 0;
}

// ---- attention
inline constexpr int tile = 64;  // queries or keys of a block
/// A line's numbers (attention_lines.h): a query's distance to a key, i - j, is at
/// i - (the block's first) + sk - 1 - j.
constexpr std::int64_t line_length(std::int64_t sk) { return sk + tile - 1; }
inline constexpr std::int64_t widest_tiled_head = 256;
/// Of one type with the queries, and whole vectors.
inline bool are_tiles(const Tensor& rows, const Attended& in) {
  return rows.dtype() == in.q.dtype() && whole_vectors(rows) && rows.dim(-1) % 8 == 0;
}
/// Whether tensor cores can do it: types, widths and places. What is written may be anything.
inline bool fits_tiles(const Attended& in) {
  if (std::max(in.q.dim(-1), in.v.dim(-1)) > widest_tiled_head || !is_half(in.q.dtype())) return false;
  return are_tiles(in.q, in) && are_tiles(in.k, in) && are_tiles(in.v, in);
}
/// The same of going back, where gradients of results are read in tiles too.
inline bool fits_tiles(const Attended& in, const Tensor& dout) {
  return fits_tiles(in) && are_tiles(dout, in);
}
/// Of the sums of slopes by distance, in tiles.
inline Shape lines_of_distances(const Attended& in) {
  const std::int64_t tiles = (in.q.dim(0) + tile - 1) / tile;
  return {in.q.dim(1) * in.q.dim(2) * in.q.dim(3) * tiles, line_length(in.k.dim(0))};
}

// ---- layers that remember
/// Steps that a thread walks over in one go; back, where a line of sums is written for them, more.
inline constexpr int filtered_at_once = 32, filtered_in_line = 128;
/// Of what channels have: their taps, or a bias.
inline Shape lines_of_filters(const Tensor& x, const Tensor& of) {
  return {(x.dim(0) + filtered_in_line - 1) / filtered_in_line * x.dim(1), of.elements()};
}

/// Whether tensor cores do a state space (state_tiles.h): not in f16, since a memory may be larger than that.
inline bool fits_scan(const Tensor& rows) {
  return rows.dtype() == Dtype::bf16 && whole_vectors(rows) && rows.dim(-1) % 8 == 0;
}
inline constexpr std::int64_t widest_scanned_head = 128;
inline bool scans_by_tiles(const DeltaIn& in) {
  return !in.corrects() && !in.memory && in.q.dim(3) <= widest_scanned_head && fits_scan(in.q) &&
         fits_scan(in.k) && fits_scan(in.v);
}
inline bool scans_by_tiles(const DeltaIn& in, const Tensor& dout) {
  return scans_by_tiles(in) && fits_scan(dout);
}

/// Of the gated delta rule and state spaces: steps that are taken at once, after how many of them a state is
/// kept for the way back, and columns of a head's memory that a block has.
inline constexpr int delta_chunk = 16, delta_stretch = 2 * delta_chunk, delta_part = 32;
inline std::int64_t parts_of_delta(const DeltaIn& in) { return (in.v.dim(4) + delta_part - 1) / delta_part; }
inline std::int64_t blocks_of_delta(const DeltaIn& in) {
  return in.v.dim(1) * in.v.dim(2) * in.v.dim(3) * parts_of_delta(in);
}
/// Steps of a chunk by tensor cores, and heads that a block takes one after another on the way back, to add
/// up what they have of the same keys. Not by how many blocks there would be: ranks may have fewer groups.
inline constexpr int scan_chunk = tile, scan_heads = 4;
/// Steps that the way back goes over at once, since it works in so much for each of them: whole chunks, and
/// of many sequences fewer. No bit depends on it.
inline std::int64_t segment_of_delta(const DeltaIn& in) {
  const std::int64_t chunks = (in.v.dim(0) + scan_chunk - 1) / scan_chunk,
                     at_once = 1024 / in.v.dim(1) / scan_chunk;
  return std::min(chunks, std::clamp<std::int64_t>(at_once, 1, 8)) * scan_chunk;
}
inline std::int64_t segments_of_delta(const DeltaIn& in) {
  return (in.v.dim(0) + segment_of_delta(in) - 1) / segment_of_delta(in);
}
/// States, in whole eights of rows, or whole tiles: of a segment, and before each segment but the first.
inline std::int64_t rows_of_states(const DeltaIn& in, const Tensor& dout) {
  const std::int64_t d = in.q.dim(3);
  if (!scans_by_tiles(in, dout)) return (d + 7) / 8 * 8;
  return d <= widest_scanned_head / 2 ? widest_scanned_head / 2 : widest_scanned_head;
}
inline Shape states_in_segment(const DeltaIn& in, const Tensor& dout) {
  const std::int64_t states = segment_of_delta(in) / (scans_by_tiles(in, dout) ? scan_chunk : delta_stretch);
  return {blocks_of_delta(in), states, rows_of_states(in, dout), delta_part};
}
inline Shape states_of_segments(const DeltaIn& in, const Tensor& dout) {
  return {blocks_of_delta(in), segments_of_delta(in) - 1, rows_of_states(in, dout), delta_part};
}
/// What each part and head, or set of heads, has of a query's row and of a key's, in a segment; and two
/// numbers a step, of a state space three.
inline Shape lines_of_delta(const DeltaIn& in, const Tensor& dout) {
  const std::int64_t heads = in.v.dim(3), sets = (heads + scan_heads - 1) / scan_heads;
  return {2, (scans_by_tiles(in, dout) ? sets : heads) * parts_of_delta(in),
          segment_of_delta(in) * in.v.dim(1) * in.v.dim(2), in.q.dim(3)};
}
inline Shape numbers_of_delta(const DeltaIn& in) {
  return {in.corrects() ? 2 : 3, parts_of_delta(in), in.decay.elements()};
}

// ---- eight bits
inline constexpr int rounded_tile = 64;  // rows and columns that a block rounds
inline std::int64_t rounding_blocks(const Tensor& x) {
  const auto tiles = [](std::int64_t n) {
    return ((n + f8_unit - 1) / f8_unit * f8_unit + rounded_tile - 1) / rounded_tile;
  };
  return tiles(x.dim(0)) * tiles(x.dim(1));
}

}  // namespace weft::cuda
