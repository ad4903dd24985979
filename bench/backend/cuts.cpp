// Attention of an encoder whose sequences are cut over ranks, plainly or in a zigzag: for every rank its
// forward and backward, as nn/context_parts.h makes them of pieces, one rank after the other on this machine.
// What counts is the slowest rank: all wait for it. Prints a table of medians over turns.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "weft/backend/cpu/device.h"
#include "weft/base/random.h"
#include "weft/ops/attention.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

constexpr std::int64_t s = 512, b = 4, n = 12, d = 64;
constexpr int turns = 7;

enum class Cut { plain, zigzag };

/// Steps that lie together: a rank holds one such piece, or two.
struct Piece {
  std::int64_t start, steps;
};

std::vector<Piece> pieces_of(Cut cut, int rank, int ranks) {
  if (cut == Cut::plain) return {{rank * s / ranks, s / ranks}};
  const std::int64_t chunk = s / (2 * ranks);
  return {{rank * chunk, chunk}, {(2 * ranks - 1 - rank) * chunk, chunk}};
}

Tensor drawn(Device& device, const Shape& shape, std::uint64_t number) {
  std::vector<float> values(std::size_t(shape.elements()));
  fill_normal(Draw({.seed = 1, .purpose = Purpose::test, .sample = number}), 0, values);
  return from_host<float>(device, shape, values);
}

/// Whole texts, of which the first `present` steps are no padding.
struct Texts {
  Tensor q, k, v, dout, o, lse, dq, dk, dv, segments;
};

Texts texts_of(Device& device, std::int64_t present) {
  const Shape queries{s, b, n, 1, d}, keys{s, b, n, d};
  Texts t{.q = drawn(device, queries, 1),
          .k = drawn(device, keys, 2),
          .v = drawn(device, keys, 3),
          .dout = drawn(device, queries, 4),
          .o = empty(device, queries),
          .lse = empty(device, {b, n, s}),
          .dq = ops::zeros(device, queries),
          .dk = ops::zeros(device, keys),
          .dv = ops::zeros(device, keys),
          .segments = {}};
  std::vector<std::int32_t> there;
  for (std::int64_t i = 0; i < b * s; ++i) there.push_back(i % s < present ? 0 : -1);
  if (present < s) t.segments = from_host(device, {b, s}, there);
  return t;
}

Tensor part(const Tensor& x, int dim, const Piece& piece) { return x.slice(dim, piece.start, piece.steps); }

AttentionArgs args_of(const Texts& t, const Piece& queries, const Piece& keys) {
  AttentionArgs how{.scale = 1 / std::sqrt(float(d)), .query0 = queries.start, .key0 = keys.start};
  if (!t.segments) return how;
  how.query_segments = part(t.segments, 1, queries);
  how.key_segments = part(t.segments, 1, keys);
  return how;
}

/// Forward: every piece of keys, merged. Backward: the same pieces, added up.
void attend(const Texts& t, const Piece& queries, const std::vector<Piece>& all_keys) {
  const AttentionOut sum{part(t.o, 0, queries), part(t.lse, 2, queries)};
  const Tensor q = part(t.q, 0, queries);
  bool begun = false;
  for (const Piece& keys : all_keys) {
    const AttentionOut one =
        begun ? AttentionOut{empty(q.device(), q.shape()), empty(q.device(), {b, n, queries.steps})} : sum;
    ops::attention_into(one, {q, part(t.k, 0, keys), part(t.v, 0, keys)}, args_of(t, queries, keys));
    if (begun) ops::merge_attention(sum, one);
    begun = true;
  }
  for (const Piece& keys : all_keys)
    ops::attention_backward_into({.dq = part(t.dq, 0, queries),
                                  .dk = part(t.dk, 0, keys),
                                  .dv = part(t.dv, 0, keys),
                                  .accumulate = true},
                                 part(t.dout, 0, queries), sum, {q, part(t.k, 0, keys), part(t.v, 0, keys)},
                                 args_of(t, queries, keys));
}

double seconds_of_rank(const Texts& t, Cut cut, int rank, int ranks) {
  std::vector<Piece> keys;
  for (int owner = 0; owner < ranks; ++owner)
    for (const Piece& piece : pieces_of(cut, owner, ranks)) keys.push_back(piece);
  const auto start = std::chrono::steady_clock::now();
  for (const Piece& queries : pieces_of(cut, rank, ranks)) attend(t, queries, keys);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

void row(Device& device, int ranks, std::int64_t present) {
  const Texts t = texts_of(device, present);
  std::vector<std::vector<double>> times(std::size_t(2 * ranks));
  for (int turn = 0; turn <= turns; ++turn)
    for (int rank = 0; rank < ranks; ++rank)
      for (const Cut cut : {Cut::plain, Cut::zigzag}) {
        const double seconds = seconds_of_rank(t, cut, rank, ranks);
        if (turn > 0) times[std::size_t(2 * rank + int(cut))].push_back(seconds);
      }
  for (const Cut cut : {Cut::plain, Cut::zigzag}) {
    double slowest = 0, all = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const double seconds = median(times[std::size_t(2 * rank + int(cut))]);
      slowest = std::max(slowest, seconds);
      all += seconds;
    }
    std::printf("| %d | %3lld of %lld | %-6s | %6.1f | %6.1f |\n", ranks, static_cast<long long>(present),
                static_cast<long long>(s), cut == Cut::plain ? "plain" : "zigzag", 1e3 * slowest,
                1e3 * all / ranks);
  }
}

}  // namespace
}  // namespace weft

int main() {
  weft::CpuDevice device;
  std::printf("| ranks | words | cut | slowest rank, ms | mean, ms |\n|---|---|---|---|---|\n");
  for (const int ranks : {2, 4})
    for (const std::int64_t present : {weft::s, weft::s / 2}) weft::row(device, ranks, present);
}
