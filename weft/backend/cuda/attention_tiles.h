// Tiles in shared memory and their products by tensor cores: what attention of small floats is made of. A
// block has a tile of 64 rows of its own, or two; tiles of `passing` rows pass by, fewer where heads are
// wide.
//
// A warp has 16 rows of a product's result, in d-fragments: element i of fragment n is row lane / 4 + 8 (i /
// 2), column 8 n + 2 (lane % 4) + i % 2.
#pragma once

#include "weft/backend/cuda/attention_job.h"
#include "weft/backend/cuda/space.h"

namespace weft::cuda {

inline constexpr int tile_threads = 128;

/// [rows, d] of 16 bits, in panels of 64 columns. The 16-byte pieces of a panel's row r lie at piece ^ (r %
/// 8), so that 8 rows of one column of pieces are in 8 different groups of banks.
template <int d, int rows = tile>
struct alignas(1024) Tile {
  std::uint16_t numbers[rows * d];
  __device__ __forceinline__ std::uint16_t* piece(int row, int piece) {
    if constexpr (d == 64) return numbers + row * d + (piece ^ row % 8) * 8;
    return numbers + (piece / 8 * rows + row) * 64 + (piece % 8 ^ row % 8) * 8;
  }
};

/// Which rows of a tensor: from first on, of one row of the batch, group and head; zeros from `length` on.
struct Stretch {
  int first, length, b, g, r;
};

inline constexpr int pieces_at_once = 8;

/// What one of a block's threads fetches of tiles that follow one another: each call of fetch() takes the
/// next.
template <int threads>
struct Source {
  static constexpr int lines_at_once = threads / pieces_at_once;
  const std::uint16_t* next;  // its first piece of the next tile
  std::int64_t step;          // to the row that it fetches after one
  int left;                   // rows from that piece's on; none where the piece lies behind the last channel
};
template <int threads = tile_threads>
__device__ __forceinline__ Source<threads> source_of(const Heads& from, const Stretch& which) {
  const int row = int(threadIdx.x) / pieces_at_once, piece = int(threadIdx.x) % pieces_at_once;
  const std::int64_t start = from.at(which.first + row, which.b, which.g, which.r) + piece * 8;
  return {reinterpret_cast<const std::uint16_t*>(from.one.data) + start,
          Source<threads>::lines_at_once * from.s,
          piece * 8 < int(from.one.width) ? which.length - which.first - row : 0};
}

/// On its way when this returns: commit_copies() and wait_copies() follow. Zeros behind the last row, and
/// behind the last channel.
template <int d, int rows, int threads>
__device__ __forceinline__ void fetch(Tile<d, rows>& to, Source<threads>& from, const Heads& of) {
  constexpr int lines = Source<threads>::lines_at_once;
  static_assert(rows % lines == 0);
  const int row0 = int(threadIdx.x) / pieces_at_once, piece0 = int(threadIdx.x) % pieces_at_once;
#pragma unroll
  for (int row = 0; row < rows; row += lines) {
    const bool inside = row < from.left;
#pragma unroll
    for (int right = 0; right < d / 8; right += pieces_at_once) {
      const bool there = right == 0 || (piece0 + right) * 8 < int(of.one.width);
      gpu::copy_async(to.piece(row0 + row, piece0 + right), from.next + right * 8, inside && there);
    }
    from.next += from.step;
  }
  from.left -= rows;
}
template <int threads = tile_threads, int d, int rows>
__device__ __forceinline__ void fetch(Tile<d, rows>& to, const Heads& from, const Stretch& which) {
  Source source = source_of<threads>(from, which);
  fetch(to, source, from);
}

/// A warp's 16 rows of a tile, as left operands.
template <int d>
struct LeftRows {
  std::uint32_t of[d / 16][4];
};
template <int d>
__device__ __forceinline__ void load_rows(LeftRows<d>& to, Tile<d>& from, int row0) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < d / 16; ++i)
    gpu::load_matrices(to.of[i], from.piece(row0 + lane % 16, 2 * i + lane / 16));
}
/// Rows that stay in a thread's registers, where it has some: of wide heads they are read again for every
/// tile.
template <int d, int widest>
struct OwnRows {
  static constexpr bool held = d <= widest;
  LeftRows<held ? d : 16> rows;
  Tile<d>& in;
  int row0;
  __device__ __forceinline__ OwnRows(Tile<d>& own, int first) : in(own), row0(first) {}
  __device__ __forceinline__ void load() {
    if constexpr (held) load_rows(rows, in, row0);
  }
};

/// s [16, 8 count] = a times rows [from, from + 8 count) of b, summed over d.
template <class Half, int d, int rows, int count>
__device__ __forceinline__ void rows_by_rows(float (&s)[count][4], const LeftRows<d>& a, Tile<d, rows>& b,
                                             int from) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) s[n][i] = 0;
#pragma unroll
  for (int half = 0; half < d / 32; ++half)  // channels 32 half .. + 31
#pragma unroll
    for (int n = 0; n < count; ++n) {
      std::uint32_t right[4];
      gpu::load_matrices(right, b.piece(from + 8 * n + lane % 8, 4 * half + lane / 8));
      gpu::multiply<Half>(s[n], a.of[2 * half], right[0], right[1]);
      gpu::multiply<Half>(s[n], a.of[2 * half + 1], right[2], right[3]);
    }
}
/// The same of rows [row0, row0 + 16) of a tile.
template <class Half, int d, int rows, int count>
__device__ __forceinline__ void rows_by_rows(float (&s)[count][4], Tile<d>& a, int row0, Tile<d, rows>& b,
                                             int from) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) s[n][i] = 0;
#pragma unroll 1
  for (int half = 0; half < d / 32; ++half) {  // channels 32 half .. + 31
    std::uint32_t left[2][4];
    gpu::load_matrices(left[0], a.piece(row0 + lane % 16, 4 * half + lane / 16));
    gpu::load_matrices(left[1], a.piece(row0 + lane % 16, 4 * half + 2 + lane / 16));
#pragma unroll
    for (int n = 0; n < count; ++n) {
      std::uint32_t right[4];
      gpu::load_matrices(right, b.piece(from + 8 * n + lane % 8, 4 * half + lane / 8));
      gpu::multiply<Half>(s[n], left[0], right[0], right[1]);
      gpu::multiply<Half>(s[n], left[1], right[2], right[3]);
    }
  }
}

template <class Half, int d, int widest, int rows, int count>
__device__ __forceinline__ void rows_by_rows(float (&s)[count][4], const OwnRows<d, widest>& a,
                                             Tile<d, rows>& b, int from = 0) {
  if constexpr (OwnRows<d, widest>::held)
    rows_by_rows<Half>(s, a.rows, b, from);
  else
    rows_by_rows<Half>(s, a.in, a.row0, b, from);
}

/// o [16, d] += p [16, 8 count] rows [from, from + 8 count) of v; p is rounded.
template <class Half, int d, int rows, int count>
__device__ __forceinline__ void add_by_columns(float (&o)[d / 8][4], const float (&p)[count][4],
                                               Tile<d, rows>& v, int from = 0) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int key = 0; key < count / 2; ++key) {  // 16 rows of v: two d-fragments are one a-fragment
    const std::uint32_t left[4] = {gpu::pack<Half>(p[2 * key][0], p[2 * key][1]),
                                   gpu::pack<Half>(p[2 * key][2], p[2 * key][3]),
                                   gpu::pack<Half>(p[2 * key + 1][0], p[2 * key + 1][1]),
                                   gpu::pack<Half>(p[2 * key + 1][2], p[2 * key + 1][3])};
#pragma unroll
    for (int n = 0; n < d / 8; n += 2) {
      std::uint32_t right[4];
      gpu::load_matrices<true>(right, v.piece(from + 16 * key + lane % 16, n + lane / 16));
      gpu::multiply<Half>(o[n], left, right[0], right[1]);
      gpu::multiply<Half>(o[n + 1], left, right[2], right[3]);
    }
  }
}

/// Row and column of a d-fragment's element.
__device__ __forceinline__ int fragment_row(int i) { return int(threadIdx.x) % 32 / 4 + 8 * (i / 2); }
__device__ __forceinline__ int fragment_column(int n, int i) {
  return 8 * n + int(threadIdx.x) % 4 * 2 + i % 2;
}

/// Two sums beside each other, at an even place; rounded as the tensor's type asks.
__device__ __forceinline__ void put_pair(const Rows& to, std::int64_t at, float x, float y) {
  if (to.vector && to.dtype != Dtype::f32) {
    gpu::store(to.data + at * 2, to.dtype == Dtype::bf16 ? gpu::pack<bf16>(x, y) : gpu::pack<f16>(x, y));
    return;
  }
  if (to.vector) return gpu::store(to.data + at * 4, float2{x, y});
  put(to, at, x);
  put(to, at + 1, y);
}

/// A tile of a row of the batch, group and head: its number, and that of their last one.
struct Task {
  Pair at;
  int last, number;
};
/// This block's, where each group has so many heads of so many rows, and a block `own` of them.
template <int own = tile>
__device__ __forceinline__ Task task_of(const Attend& a, int rows, int heads) {
  const int tiles = (rows + own - 1) / own, block = int(blockIdx.x);
  const int head = block / tiles, group = head / heads, batch = group / a.groups;
  return {{batch, group - batch * a.groups, head - group * heads, 0, 0}, tiles - 1, block - head * tiles};
}

/// Passing tiles of keys that `own` queries may see: [first, last); and the other way round.
struct Tiles {
  int first, last;
  __device__ __forceinline__ bool have(int t) const { return t >= first && t < last; }
};
template <int passing, int own = tile>
__device__ __forceinline__ Tiles key_tiles(const Attend& a, int query0) {
  const int lowest = a.first_key(query0), highest = a.last_key(query0 + own - 1);
  return {lowest / passing, (highest + passing - 1) / passing};
}
template <int passing, int own = tile>
__device__ __forceinline__ Tiles query_tiles(const Attend& a, int key0) {
  int lowest = a.causal ? key0 - a.diagonal : 0;
  int highest = a.window > 0 ? key0 + own - 1 - a.diagonal + a.window : a.sq;
  if (lowest < 0) lowest = 0;
  if (highest > a.sq) highest = a.sq;
  return {lowest / passing, (highest + passing - 1) / passing};
}

/// Channels of queries and keys, and of values, that a kernel has room for.
template <int d_, int dv_>
struct Width {
  static constexpr int d = d_, dv = dv_;
};
/// Calls act(a Width) with the least that a job fits into, and that has caps where it wants one: up to
/// widest_tiled_head there is one.
template <class Act>
bool with_width(const Attend& job, const Act& act) {
  const std::int64_t d = job.q.one.width, dv = job.v.one.width;
  const bool capped = job.cap > 0;
  if (d <= 64 && dv <= 64 && !capped)
    act(Width<64, 64>{});
  else if (d <= 128 && dv <= 128)
    act(Width<128, 128>{});
  else if (d <= 192 && dv <= 128 && !capped)
    act(Width<192, 128>{});
  else if (d <= 256 && dv <= 256)
    act(Width<256, 256>{});
  else
    return false;
  return true;
}

}  // namespace weft::cuda
