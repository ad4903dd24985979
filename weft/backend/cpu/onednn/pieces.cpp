// The library's bf16 products in small pieces, for exact mode on processors where its own ways of cutting
// show.
//
// What the library does with a large product depends on its size, and few rows or columns have loops of their
// own: one of either everywhere, and with AMX up to 32 rows where the second operand is transposed. So it is
// only asked for tiles of at least 64 rows and columns, by one thread each, and for stretches of k of one
// length, none of them short; what they give is added here, in f32: stretches one after the other, slabs as a
// balanced tree.
#include <omp.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "weft/backend/cpu/fast/loops.h"
#include "weft/backend/cpu/onednn/engine.h"
#include "weft/backend/cpu/onednn/primitive.h"
#include "weft/backend/cpu/product/tiles.h"

namespace weft {
namespace {

using fast::Type;
using onednn::Key;
using onednn::Made;
using product::Matrix;
using product::Problem;
using product::Tile;

constexpr std::int64_t most_k = 384, least_k = 32;  // of a stretch
constexpr std::int64_t most = 256, least = 64;      // rows and columns of a tile

/// How long stretches of a slab are: the last one, which has what is left, is no short one. (Of 400,000 slabs
/// 62 have no such length.)
std::int64_t stretch_of(std::int64_t slab) {
  for (std::int64_t k = most_k; slab > most_k && k > most_k / 2; k -= least_k)
    if (const std::int64_t left = slab % k; left == 0 || left >= 2 * least_k) return k;
  return most_k;
}

std::int64_t filled(std::int64_t side) { return std::max(side, least); }

/// A product's tiles, and primitives by a tile's shape, whether a stretch is the last, shorter one, and
/// thread.
struct Pieces {
  std::vector<Tile> tiles;
  std::vector<std::size_t> shapes;  // of tiles
  std::vector<Made> made;
  std::size_t threads = 0;
  std::int64_t scratch = 0, sums = 0;  // floats of a thread: the library's, and one tile's
  int depth = 0;                       // sums that a tree of slabs, or of stretches, holds at once
  std::int64_t floats() const { return scratch + sums * depth; }
};

class InPieces final : public product::Engine {
 public:
  InPieces() : engine_(dnnl::engine::kind::cpu, 0), loops_(fast::loops(fast::best_here()).elementwise) {}

  const char* name() const override { return "oneDNN in pieces"; }

  bool takes(const Problem& p) const override {
    return onednn::has_avx512() && p.a.type == Type::bf16 && p.b.type == Type::bf16 &&
           std::has_single_bit(unsigned(p.slabs)) && p.k % p.slabs == 0 && p.k / p.slabs >= least_k;
  }

  std::int64_t bytes(const Problem& p, int threads) override {
    const std::lock_guard lock(mutex_);
    const std::int64_t floats = threads * pieces(p, threads).floats() + filled_up(p);
    return floats * std::int64_t{sizeof(float)};
  }

  void run(const Problem& given, int threads, float* workspace) override {
    const std::lock_guard lock(mutex_);
    Pieces& all = pieces(given, threads);
    const Problem p = with_enough(given, workspace + threads * all.floats());
    int status = dnnl_success;
#pragma omp parallel for schedule(dynamic) num_threads(threads) reduction(max : status)
    for (std::size_t at = 0; at < all.tiles.size(); ++at) {
      const onednn::Team alone(1);
      const auto thread = std::size_t(omp_get_thread_num());
      const Worker worker{*this, all, thread, workspace + std::int64_t(thread) * all.floats()};
      status = std::max<int>(status, worker.compute(p, at));
    }
    onednn::check(given, dnnl_status_t(status));
  }

 private:
  /// One thread at one tile.
  struct Worker {
    InPieces& engine;
    Pieces& all;
    std::size_t thread;
    float* workspace;

    float* sums(int level) const { return workspace + all.scratch + level * all.sums; }

    int compute(const Problem& p, std::size_t at) const {
      const Tile& tile = all.tiles[at];
      const std::int64_t slab = p.k / p.slabs, size = filled(tile.m) * filled(tile.n);
      int status = dnnl_success, level = 0;
      for (int i = 0; i < p.slabs; ++i) {
        status = std::max(status, slab_to(level++, p, at, {i * slab, slab}));
        for (unsigned done = unsigned(i) + 1; done % 2 == 0; done /= 2, --level)
          add(level - 2, level - 1, size);
      }
      engine.store(p, tile, sums(0));
      return status;
    }

    struct Range {
      std::int64_t from, count;
    };
    /// The library is never asked to add to what is there: in which order it does depends on the size, too.
    int slab_to(int level, const Problem& p, std::size_t at, Range k) const {
      const Tile& tile = all.tiles[at];
      int status = dnnl_success;
      const std::int64_t stretch = stretch_of(k.count);
      for (std::int64_t done = 0; done < k.count; done += stretch) {
        const std::int64_t count = std::min(stretch, k.count - done);
        Problem one = part(p, tile);
        one.a.from = past(one.a, (k.from + done) * (p.a_turned ? one.a.row : 1));
        one.b.from = past(one.b, (k.from + done) * (p.b_turned ? 1 : one.b.row));
        one.out.to = sums(done > 0 ? level + 1 : level);
        one.has_bias = false;
        Made& made = InPieces::made(all, {all.shapes[at], count < stretch, thread});
        status = std::max<int>(status, onednn::execute(made, one, engine.streams_[thread], workspace));
        if (done > 0) add(level, level + 1, filled(tile.m) * filled(tile.n));
      }
      return status;
    }
    void add(int to, int from, std::int64_t count) const {
      engine.loops_.add(in_f32(sums(to)), from_f32(sums(to)), from_f32(sums(from)), count);
    }
    static const void* past(const Matrix& matrix, std::int64_t elements) {
      return static_cast<const char*>(matrix.from) + elements * size_of(matrix.type);
    }
  };

  static fast::Out in_f32(float* to) { return {to, Type::f32, false}; }
  static fast::In from_f32(const float* from) { return {from, Type::f32}; }

  /// Rounds once, where the result is not f32.
  void store(const Problem& p, const Tile& tile, float* sums) const {
    for (std::int64_t row = 0; row < tile.m; ++row) {
      float* from = sums + row * filled(tile.n);
      const std::int64_t at = (tile.i + row) * p.out_row + tile.j;
      const fast::Out to{static_cast<char*>(p.out.to) + at * size_of(p.out.type), p.out.type, false};
      const auto* bias = static_cast<const char*>(p.bias.from);
      if (p.has_bias)
        loops_.add(in_f32(from), from_f32(from), {bias + tile.j * size_of(p.bias.type), p.bias.type}, tile.n);
      if (p.accumulate)
        loops_.add(to, {to.to, to.type}, from_f32(from), tile.n);
      else
        loops_.copy(to, from_f32(from), tile.n);
    }
  }

  /// Which primitive: [shape][shorter][thread].
  struct Which {
    std::size_t shape;
    bool shorter;
    std::size_t thread;
  };
  static Made& made(Pieces& all, const Which& w) {
    return all.made[(w.shape * 2 + std::size_t(w.shorter)) * all.threads + w.thread];
  }

  Pieces& pieces(const Problem& p, int threads) {
    Key key = onednn::key_of(p, threads);
    key.out_row = p.slabs;  // where results lie does not matter, how many slabs there are does
    if (const auto found = pieces_.find(key); found != pieces_.end()) return found->second;
    while (streams_.size() < std::size_t(threads)) streams_.emplace_back(engine_);
    Pieces all;
    all.tiles = product::tiles(p.m, p.n, {.threads = threads, .most = most, .least = least});
    all.threads = std::size_t(threads);
    all.depth = int(std::bit_width(unsigned(p.slabs))) + 1;
    std::vector<std::pair<std::int64_t, std::int64_t>> sizes;
    for (const Tile& tile : all.tiles) {
      const std::pair size(filled(tile.m), filled(tile.n));
      all.shapes.push_back(std::size_t(std::ranges::find(sizes, size) - sizes.begin()));
      if (all.shapes.back() == sizes.size()) sizes.push_back(size);
      all.sums = std::max(all.sums, (size.first * size.second + 15) / 16 * 16);
    }
    for (const auto& [m, n] : sizes) make_all(all, {.m = m, .n = n}, p, threads);
    for (const Made& made : all.made)
      all.scratch = std::max(all.scratch, made.scratch_bytes / std::int64_t{sizeof(float)});
    return pieces_.emplace(key, std::move(all)).first->second;
  }

  void make_all(Pieces& all, Key key, const Problem& p, int threads) const {
    key.type = p.a.type;
    key.out_row = key.n;
    key.threads = 1;
    key.a_turned = p.a_turned && p.m >= least;
    key.b_turned = p.b_turned || p.n < least;
    key.a_row = p.m < least ? p.k : p.a.row;
    key.b_row = p.n < least ? p.k : p.b.row;
    const std::int64_t slab = p.k / p.slabs, stretch = stretch_of(slab);
    for (const bool shorter : {false, true}) {
      key.k = shorter ? slab % stretch : stretch;
      const bool met = shorter ? key.k > 0 : slab >= stretch;
      for (int thread = 0; thread < threads; ++thread) all.made.push_back(met ? made_for(key) : Made());
    }
  }

  Made made_for(const Key& key) const { return onednn::make(key, engine_); }

  /// Floats that operands of too few rows or columns take, filled up. Two of them make one.
  static std::int64_t filled_up(const Problem& p) {
    return (std::int64_t(p.m < least) + std::int64_t(p.n < least)) * least * p.k / 2;
  }

  /// Too few rows or columns become enough, of which the others are zero and are not looked at.
  static Problem with_enough(Problem p, float* room) {
    auto* to = reinterpret_cast<std::uint16_t*>(room);
    if (p.m < least) {
      fill_up(to, p.a, {p.m, p.k, !p.a_turned});
      p.a = {to, p.a.type, p.k};
      p.a_turned = false;
      to += least * p.k;
    }
    if (p.n < least) {
      fill_up(to, p.b, {p.n, p.k, p.b_turned});
      p.b = {to, p.b.type, p.k};
      p.b_turned = true;
    }
    return p;
  }
  struct Few {
    std::int64_t count, k;
    bool k_lies_side_by_side;
  };
  static void fill_up(std::uint16_t* to, const Matrix& from, const Few& few) {
    const auto* numbers = static_cast<const std::uint16_t*>(from.from);
    const std::int64_t step = few.k_lies_side_by_side ? from.row : 1;
    const std::int64_t step_of_k = few.k_lies_side_by_side ? 1 : from.row;
    for (std::int64_t i = 0; i < few.count; ++i)
      for (std::int64_t k = 0; k < few.k; ++k) to[i * few.k + k] = numbers[i * step + k * step_of_k];
    std::fill(to + few.count * few.k, to + least * few.k, std::uint16_t{0});
  }

  dnnl::engine engine_;
  const fast::ElementwiseLoops& loops_;
  std::vector<dnnl::stream> streams_;  // of threads
  std::mutex mutex_;
  std::unordered_map<Key, Pieces, onednn::Mix> pieces_;
};

}  // namespace

std::shared_ptr<product::Engine> open_onednn_in_pieces() { return std::make_shared<InPieces>(); }

}  // namespace weft
