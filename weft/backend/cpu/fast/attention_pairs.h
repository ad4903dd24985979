// bf16 operands of attention as pairs for the products of native/*/tiles.h: rows of a are bf16 as they lie,
// filled up with zeros; of b, two rows meet in words. Probabilities and ds are rounded to bf16 to be
// multiplied. All sizes here are in whole tiles, `depth` columns a row. For sources of loops/ only.
#pragma once

#include <tiles.h>

#include "weft/backend/cpu/fast/attention_tile.h"

namespace weft::fast::WEFT_ISA {

static_assert(width == lanes && 2 * width == tile_depth && tile_keys % tile_depth == 0 &&
              tile_queries % tile_depth == 0);

[[gnu::always_inline]] inline Index whole_depth(Index x) { return round_up(x, tile_depth); }

/// Keys from a border of the tile's depths on: a sum over keys is made of whole depths, and which keys share
/// one must not depend on who sees them.
[[gnu::always_inline]] inline Range whole_depths(Range keys, Index tile) {
  return {tile + (keys.from - tile) / tile_depth * tile_depth, keys.to};
}

/// What scores from plain q and k are yet to be multiplied by: bf16 q could not hold the factor. That is done
/// where the maximum is taken off, or where a bias is added or a cap put on.
inline bool scales_at_once(const AttentionJob& job) { return !(job.scale > 0); }
inline float scale_before_bias(const AttentionJob& job) {
  return scales_at_once(job) ? 1.0F : job.scale * log2_e;
}
inline float scale_left(const AttentionJob& job) {
  return job.bias.wanted || job.cap > 0 ? 1.0F : scale_before_bias(job);
}
inline void scale_scores(const AttentionJob& job, float* scores, Index keys) {
  for (Index i = 0; i < keys * tile_queries; i += width)
    write(scores + i, read(scores + i) * spread(job.scale * log2_e));
}

/// `count` rows of d bf16, each filled up with zeros to whole depths, and rows of zeros up to `filled`.
struct Copy {
  Index count, filled, d;
};
inline void copy_rows(float* to, const AttentionRows& rows, Index offset, Copy how) {
  const Index bytes = how.d * 2, whole = whole_depth(how.d) * 2;
  char* at = reinterpret_cast<char*>(to);
  const char* from = static_cast<const char*>(rows.at) + offset * 2;
  for (Index i = 0; i < how.count; ++i, at += whole, from += rows.s * 2) {
    Index c = 0;
    for (; c + 64 <= bytes; c += 64) write<Words>(at + c, read<Words>(from + c));
    if (c == whole) continue;
    write<Words>(at + c, Words{});
    __builtin_memcpy(at + c, from + c, std::size_t(bytes - c));
  }
  for (Index i = how.count; i < how.filled; ++i, at += whole)
    for (Index c = 0; c < whole; c += 64) write<Words>(at + c, Words{});
}

/// to[i][c] = from[2 i][c] and, above it, from[2 i + 1][c].
inline void pair_rows(float* to, const float* from, Index rows, Index depth) {
  for (Index i = 0; i < rows; i += 2, from += depth, to += depth)
    for (Index c = 0; c < depth; c += tile_depth) {
      const Words low = read<Words>(from + c / 2), high = read<Words>(from + depth / 2 + c / 2);
      const Words even = (low & 0xffffU) | (high << 16), odd = (low >> 16) | (high & 0xffff0000U);
      Floats first, second;
      interleave((Floats)even, (Floats)odd, first, second);
      write(to + c, first);
      write(to + c + width, second);
    }
}

/// Rows of zeros for keys that fill up the last depth.
inline void fill_keys(float* scores, Index keys) {
  for (Index i = keys * tile_queries; i < whole_depth(keys) * tile_queries; i += width)
    write(scores + i, Floats{});
}
/// Scores [keys, queries] as bf16 [queries, keys], tile_keys a row.
inline void turn_scores(float* to, const float* scores, const Meeting& at) {
  for (Index v = 0; v < at.queries; v += width)
    for (Index k = 0; k < at.keys; k += tile_depth) {
      Square square;
      for (Index i = 0; i < width; ++i) {
        const float* two = scores + (k + 2 * i) * tile_queries + v;
        square.row[i] = (Floats)pairs_of(read(two), read(two + tile_queries));
      }
      square.turn();
      for (Index i = 0; i < width; ++i) write(to + (v + i) * tile_keys / 2 + k / 2, square.row[i]);
    }
}
/// Scores [keys, queries] as words of two keys [keys / 2, queries].
inline void pair_scores(float* to, const float* scores, const Meeting& at) {
  for (Index k = 0; k < whole_depth(at.keys); k += 2, scores += 2 * tile_queries, to += tile_queries)
    for (Index v = 0; v < at.queries; v += width)
      write<Words>(to + v, pairs_of(read(scores + v), read(scores + tile_queries + v)));
}
/// Words of two keys [keys / 2, queries] as bf16 [queries, keys], tile_keys a row.
inline void turn_words(float* to, const float* words, const Meeting& at) {
  for (Index v = 0; v < at.queries; v += width)
    for (Index k = 0; k < at.keys; k += tile_depth)
      transpose_square(to + v * tile_keys / 2 + k / 2, tile_keys / 2, words + k / 2 * tile_queries + v,
                       tile_queries);
}
/// Queries as rows of a product over keys: of words as they lie, or of bf16 that were turned.
inline auto by_query(const float* keys) {
  if constexpr (takes_columns)
    return PairColumns{keys, tile_queries};
  else
    return PairRows{keys, tile_keys};
}

}  // namespace weft::fast::WEFT_ISA
