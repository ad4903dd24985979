// What forward and backward attention share: tiles of scores [keys, queries] with queries along the lanes, so
// that maxima and sums over keys need no shuffles; their masks, bias, dropout; 2^x; and the copies of rows
// they multiply. For sources of loops/ only.
#pragma once

#include <arithmetic.h>
#include <cut.h>

#include "weft/backend/cpu/fast/attention_job.h"
#include "weft/backend/cpu/fast/row_copies.h"

namespace weft::fast::WEFT_ISA {

inline constexpr Index tile_keys = attention_keys;
inline constexpr Index tile_registers = tile_queries / width;
inline constexpr float log2_e = 1.44269504088896341F;
inline constexpr float ln_2 = 0.693147180559945309F;
inline constexpr float infinite = __builtin_inff();

[[gnu::always_inline]] inline Ints spread(std::int32_t x) { return x - Ints{}; }

/// A number for each query of some registers.
template <int count>
struct Queries {
  Floats of[count];
};
/// How many registers, as a type.
template <int count>
struct Registers {};
/// body(first query, Registers) with as many as go at once, for all registers of some queries.
template <class Body>
[[gnu::always_inline]] inline void each_registers(Index queries, const Body& body) {
  Index v = 0;
  if constexpr (width == 16) {
    for (; v + 3 * width < queries; v += 4 * width) body(v, Registers<4>{});
    if (v + 2 * width < queries) return body(v, Registers<3>{});
    if (v + width < queries) return body(v, Registers<2>{});
  }
  for (; v < queries; v += width) body(v, Registers<1>{});
}

/// 2^x to 1 ulp for x up to 127; below -126 zero, and at -inf; NaN stays.
[[gnu::always_inline]] inline Floats exp2(Floats x) {
  // x = n + f with |f| <= 1/2; adding 1.5 * 2^23 + 127 leaves n + 127 in the lowest bits.
  const Floats shifted = x + (0x1.8p23F + 127);
  const Floats f = x - (shifted - (0x1.8p23F + 127));
  Floats p = spread(0x1.44400p-13F);
  p = added_product(p, f, spread(0x1.5f48c0p-10F));
  p = added_product(p, f, spread(0x1.3b2a1cp-7F));
  p = added_product(p, f, spread(0x1.c6aeccp-5F));
  p = added_product(p, f, spread(0x1.ebfbe0p-3F));
  p = added_product(p, f, spread(0x1.62e430p-1F));
  p = added_product(p, f, spread(1.0F));
  const Floats power = (Floats)((Words)shifted << 23);
  return x < -126.0F ? Floats{} : p * power;
}

// ---- what comes next, and copies along the lanes

/// Some rows of a tensor, over the tiles of about `products` products with a tile of keys.
struct Ahead {
  Index offset, rows, products;
};
inline void fetch_rows(Fetch& fetch, const AttentionRows& rows, Index d, Ahead how) {
  fetch_over(fetch, rows, d, {how.offset, how.rows, how.products * (tile_keys / 8)});
}

/// to[c][i] = from[i][c]: `to` has rows of tile_queries.
inline void transpose(float* to, float* from, Index step, Transposed how) {
  transpose(to, tile_queries, from, step, how);
}

// ---- who sees whom

/// The part of the scores at hand: one row of the batch, one head, some queries.
struct ScorePlace {
  Index row = 0, head = 0;
  Range queries;
};

/// Keys that at least one of the queries may see by position.
inline Range visible(const AttentionJob& job, Range queries) {
  Range keys = {0, job.sk};
  if (job.causal) keys.to = least(keys.to, queries.to + job.diagonal);
  if (job.window > 0) keys.from = most(keys.from, queries.from + job.diagonal - job.window + 1);
  return keys;
}
/// Whether every query sees every key, by position.
inline bool all_visible(const AttentionJob& job, Range queries, Range keys) {
  if (job.causal && keys.to - 1 > queries.from + job.diagonal) return false;
  return job.window == 0 || keys.from > queries.to - 1 + job.diagonal - job.window;
}

/// Whether all of them are padding.
inline bool padded(const AttentionSegments& segments, Index row, Range range) {
  for (Index i = range.from; i < range.to; ++i)
    if (segments.at[row * segments.b + i * segments.s] >= 0) return false;
  return true;
}
/// Of these keys, those from the first to the last that a query may see: padding at either end costs nothing.
inline Range attended(const AttentionJob& job, const ScorePlace& place, Range keys) {
  Range left = visible(job, place.queries).both(keys);
  if (job.query_segments.at == nullptr || left.empty()) return left;
  if (padded(job.query_segments, place.row, place.queries)) return {left.from, left.from};
  const AttentionSegments& segments = job.key_segments;
  const std::int32_t* at = segments.at + place.row * segments.b;
  while (!left.empty() && at[left.from * segments.s] < 0) ++left.from;
  while (!left.empty() && at[(left.to - 1) * segments.s] < 0) --left.to;
  return left;
}

enum class TileSight : std::uint8_t { nothing, some, everything };

struct Spread {
  std::int32_t low, high;
};
inline Spread spread_of(const AttentionSegments& segments, Index row, Range range) {
  const std::int32_t* at = segments.at + row * segments.b;
  Spread found = {at[range.from * segments.s], at[range.from * segments.s]};
  for (Index i = range.from + 1; i < range.to; ++i) {
    const std::int32_t x = at[i * segments.s];
    found.low = x < found.low ? x : found.low;
    found.high = x > found.high ? x : found.high;
  }
  return found;
}
/// By segments.
inline TileSight seen(const AttentionJob& job, const ScorePlace& place, Range keys) {
  if (job.query_segments.at == nullptr) return TileSight::everything;
  const Spread q = spread_of(job.query_segments, place.row, place.queries);
  const Spread k = spread_of(job.key_segments, place.row, keys);
  if (q.high < k.low || k.high < q.low || q.high < 0) return TileSight::nothing;
  return q.low == q.high && k.low == k.high ? TileSight::everything : TileSight::some;
}

/// scores[k][q] = -inf where q does not see k by position.
inline void mask_positions(const AttentionJob& job, float* scores, const ScorePlace& place, Range keys) {
  // Positions count from the tile's first query, so that they fit a lane: |everything| < 2^31 - tile.
  const Index from = place.queries.from + job.diagonal;
  Ints lane;
  for (int i = 0; i < width; ++i) lane[i] = i;
  for (Index k = keys.from; k < keys.to; ++k) {
    const auto behind = [&](Index limit) { return std::int32_t(most(least(limit, 1 << 20), -(1 << 20))); };
    const Ints low = spread(job.causal ? behind(k - from) : -(1 << 20));  // query >= low sees k
    const Ints high =
        spread(job.window > 0 ? behind(k - from + job.window) : 1 << 20);  // query < high sees k
    float* row = scores + (k - keys.from) * tile_queries;
    for (Index v = 0; v < tile_queries; v += width) {
      const Ints query = lane + std::int32_t(v);
      const Floats x = read(row + v);
      write(row + v, ((query >= low) & (query < high)) ? x : spread(-infinite));
    }
  }
}

inline void mask_segments(const AttentionJob& job, float* scores, const ScorePlace& place, Range keys) {
  const AttentionSegments& qs = job.query_segments;
  const AttentionSegments& ks = job.key_segments;
  // Padding of one kind never meets padding of the other.
  std::int32_t mine[tile_queries] = {};
  for (Index i = 0; i < place.queries.size(); ++i) {
    const std::int32_t segment = qs.at[place.row * qs.b + (place.queries.from + i) * qs.s];
    mine[i] = segment < 0 ? -1 : segment;
  }
  for (Index k = keys.from; k < keys.to; ++k) {
    const std::int32_t segment = ks.at[place.row * ks.b + k * ks.s];
    const Ints key = spread(segment < 0 ? -2 : segment);
    float* row = scores + (k - keys.from) * tile_queries;
    for (Index v = 0; v < tile_queries; v += width) {
      Ints query;
      __builtin_memcpy(&query, mine + v, sizeof query);
      const Floats x = read(row + v);
      write(row + v, query == key ? x : spread(-infinite));
    }
  }
}

/// A head's bias as powers of two: query i of the place and key j find theirs at i + sk - 1 - j, and queries
/// that fill up the last tile find zeros.
inline void load_bias(const AttentionJob& job, float* to, const ScorePlace& place) {
  if (!job.bias.wanted || job.sk == 0) return;
  const Index count = place.queries.size() + job.sk - 1;
  const float* from =
      job.bias.at + place.head * job.bias.n + job.bias.zero + place.queries.from - (job.sk - 1);
  for (Index i = 0; i < count; ++i) to[i] = from[i] * log2_e;
  for (Index i = count; i < count + tile_queries; ++i) to[i] = 0;
}

/// scores = factor scores + bias; `bias` is that of the tile's first query and first key.
inline void add_bias(float* scores, const float* bias, Index queries, Index keys, float factor) {
  for (Index k = 0; k < keys; ++k)
    for (Index v = 0; v < queries; v += width) {
      float* here = scores + k * tile_queries + v;
      write(here, added_product(read(here), spread(factor), read(bias + v - k)));
    }
}

/// What one tile of queries and one tile of keys have to do with each other.
struct Meeting {
  Index queries = 0;
  Index skipped = 0, keys = 0;  // keys of the tile, or of the chunk, before the first one; and how many
  [[gnu::always_inline]] Index registers() const { return round_up(queries, width) / width; }
};

// ---- scores under a cap

/// x (1 - x^2 / 3 + ...) near zero, where 1 - 2 / (1 + e^2x) would leave few digits.
[[gnu::always_inline]] inline Floats tanh(Floats x) {
  const Floats square = x * x;
  Floats p = spread(0x1.664f48p-6F);
  p = added_product(p, square, spread(-0x1.ba1ba2p-5F));
  p = added_product(p, square, spread(0x1.111112p-3F));
  p = added_product(p, square, spread(-0x1.555556p-2F));
  const Floats near = added_product(x * square, p, x);
  const Floats power = x * (2 * log2_e);
  const Floats e = exp2(power > 126.0F ? spread(126.0F) : power);
  const Floats far = 1.0F - 2.0F / (1.0F + e);
  return (square < 0.0625F) ? near : far;
}

/// A score's cap in powers of two.
inline float cap_of(const AttentionJob& job) { return job.cap * log2_e; }
/// Scores, which times factor are in powers of two, become those under the cap.
inline void cap_scores(const AttentionJob& job, float* scores, const Meeting& at, float factor) {
  const Floats cap = spread(cap_of(job)), part = spread(factor / cap_of(job));
  for (Index k = 0; k < at.keys; ++k)
    for (Index v = 0; v < at.queries; v += width) {
      float* here = scores + k * tile_queries + v;
      write(here, cap * tanh(read(here) * part));
    }
}
/// The derivative of a score under the cap by what it was. Nobody sees one that is infinite.
[[gnu::always_inline]] inline Floats slope_of(Floats score, Floats one_over_cap) {
  const Floats part = score * one_over_cap, slope = 1.0F - part * part;
  return slope > 0.0F ? slope : Floats{};
}

/// dbias += dscores. Keys that are a register apart meet queries that are a register apart in one column:
/// such are added up before the column is touched.
inline void add_to_dbias(const AttentionJob& job, const float* dscores, const ScorePlace& place, Range keys) {
  const AttentionBiasSums& sums = job.dbias;
  const Index stripe = place.queries.from / attention_stripe;
  float* to = sums.at + (place.head * sums.stripes + stripe) * sums.row +
              (place.queries.from - stripe * attention_stripe) + job.sk - 1 - keys.from;
  const Index registers = (place.queries.size() + width - 1) / width;
  for (Index first = 0; first < width && first < keys.size(); ++first) {
    const Index rows = (keys.size() - first + width - 1) / width;
    for (Index column = 1 - rows; column < registers; ++column) {
      Floats sum = {};
      for (Index row = most(0, -column); row < rows && row + column < registers; ++row)
        sum = sum + read(dscores + (first + row * width) * tile_queries + (row + column) * width);
      float* at = to + column * width - first;
      write(at, read(at) + sum);
    }
  }
}

/// One tile of scores: whose they are, and what is added to them.
struct ScoreTile {
  float* scores;
  const ScorePlace& place;
  Range keys;
  const float* bias;  // of the task's first query and key 0 (load_bias)
  Index first;        // of the task's queries
  float factor;       // of scores, where a bias is added or they have a cap
};
/// The scores of one tile, masked; false where no query sees a key. multiply() makes the products.
template <class Multiply>
bool score(const AttentionJob& job, const ScoreTile& tile, const Multiply& multiply) {
  const auto& [scores, place, keys, bias, first, factor] = tile;
  const TileSight by_segment = seen(job, place, keys);
  if (by_segment == TileSight::nothing) return false;
  multiply();
  if (job.bias.wanted)
    add_bias(scores, bias + place.queries.from - first + job.sk - 1 - keys.from, place.queries.size(),
             keys.size(), factor);
  if (job.cap > 0) cap_scores(job, scores, {place.queries.size(), 0, keys.size()}, factor);
  if (!all_visible(job, place.queries, keys)) mask_positions(job, scores, place, keys);
  if (by_segment == TileSight::some) mask_segments(job, scores, place, keys);
  return true;
}

// ---- dropout by address

struct Four {
  Words word[4];
};
[[gnu::always_inline]] inline void products(Words a, std::uint32_t by, Words& high, Words& low) {
  const Longs even = multiply_halves((Longs)a, Longs{} + by);
  const Longs odd = multiply_halves((Longs)a >> 32, Longs{} + by);
  const Longs upper = Longs{} + 0xffffffff00000000U;
  high = (Words)((even >> 32) | (odd & upper));
  low = (Words)((even & ~upper) | (odd << 32));
}
/// Philox 4x32-10 on a register of counters, as base/random.h has it.
[[gnu::always_inline]] inline Four philox(Four counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    Words even_high, even_low, odd_high, odd_low;
    products(counter.word[0], 0xD2511F53U, even_high, even_low);
    products(counter.word[2], 0xCD9E8D57U, odd_high, odd_low);
    counter = {{odd_high ^ counter.word[1] ^ key0, odd_low, even_high ^ counter.word[3] ^ key1, even_low}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

/// factor[k][q] = 0 where the probability is dropped, else dropout.kept. Four keys share a block of numbers.
inline void draw(const AttentionJob& job, float* factor, const ScorePlace& place, Range keys) {
  const AttentionDropout& dropout = job.dropout;
  const AttentionDraw& at = dropout.draws[place.row];
  const auto head = std::uint64_t(dropout.head0 + place.head);
  const Index shift = dropout.key0;
  for (Index v = 0; v < place.queries.size(); v += width) {
    Words low, high;
    for (int i = 0; i < width; ++i) {
      const auto query = std::uint64_t(dropout.query0 + place.queries.from + v + i);
      const std::uint64_t block = head << 38 | query << 18;
      low[i] = std::uint32_t(block);
      high[i] = std::uint32_t(block >> 32);
    }
    for (Index k = (keys.from + shift) & ~Index{3}; k < keys.to + shift; k += 4) {
      const Four random =
          philox({{low | std::uint32_t(k >> 2), high, Words{} + at.upper[0], Words{} + at.upper[1]}},
                 at.key[0], at.key[1]);
      for (int j = 0; j < 4; ++j) {
        const Index row = k + j - shift - keys.from;
        if (row < 0 || row >= keys.size()) continue;
        const Words dropped = Words{} + dropout.dropped;
        write(factor + row * tile_queries + v, random.word[j] < dropped ? Floats{} : spread(dropout.kept));
      }
    }
  }
}

}  // namespace weft::fast::WEFT_ISA
