// Primitives are made once for each shape and found again without the heap; operands are read where they lie.
#include "weft/backend/cpu/onednn/engine.h"

#include <omp.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/backend/cpu/onednn/primitive.h"
#include "weft/backend/cpu/product/tiles.h"

namespace weft {
namespace {

using dnnl::memory;
using fast::Type;
using onednn::check, onednn::execute, onednn::has_avx512, onednn::key_of, onednn::rows_of, onednn::type_of;
using onednn::Key, onednn::Made, onednn::Mix, onednn::Team;
using product::Matrix;
using product::Problem;
using product::Tile;

/// oneDNN splits a longer k among threads, sooner where the first operand is transposed or the result is
/// added to, and a short one too where the result is small. Then bits depend on threads, m and n. Such
/// products are cut into tiles, one thread each.
constexpr std::int64_t longest_shared = 1024, longest_added = 512, least_shared = 64, whole = 32;
constexpr std::int64_t too_long = 1 << 23;
bool may_split(const Problem& p) {
  const bool added = p.a_turned || p.accumulate;
  if (added && (p.k > longest_added || p.k % whole != 0)) return true;
  return p.k > longest_shared || p.m < least_shared || p.n < least_shared;
}

/// Where one thread's order of sums depends on the size of a tile too: in f32, where a result has no gaps
/// between its rows however it is cut (oneDNN takes other loops for those), and where a k of odd length is
/// added to something. Then tiles are the same for any number of threads.
bool size_decides(const Problem& p) {
  return p.a.type == Type::f32 || p.m == 1 || p.n < 4 || (p.accumulate && p.k % whole != 0);
}

/// A product in tiles: each tile's shape, and primitives for each shape and thread.
struct Tiled {
  std::vector<Tile> tiles;
  std::vector<std::size_t> shapes;  // of tiles
  std::vector<Made> made;           // [shape][thread]
  std::int64_t scratch_bytes = 0;   // of a thread
};

class OneDnn final : public product::Engine {
 public:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  const char* name() const override { return "oneDNN"; }

  bool takes(const Problem& p) const override {
    if (p.slabs > 1 || !multiplies(p.a.type) || (p.has_bias && p.bias.type == Type::f16)) return false;
    if (p.out.type != Type::f32 && p.accumulate) return false;
    return !(p.has_bias && p.accumulate);
  }

  /// The library asks the heap several times for every call: little models would feel it. With AMX it has no
  /// bf16 for 2^24 columns.
  bool pays(const Problem& p) const override {
    return std::min(p.m, p.n) >= least_shared && std::max(p.m, p.n) < too_long;
  }

  std::int64_t bytes(const Problem& p, int threads) override {
    const std::lock_guard lock(mutex_);
    if (splits(p)) return threads * tiled(p, threads).scratch_bytes;
    return made(p, threads).scratch_bytes;
  }

  void run(const Problem& p, int threads, float* workspace) override {
    const std::lock_guard lock(mutex_);
    if (splits(p)) return run_tiles(p, threads, workspace);
    const Team team(threads);
    check(p, execute(made(p, threads), p, stream_, workspace));
  }

 private:
  bool multiplies(Type type) const { return type == Type::f32 || (type == Type::bf16 && avx512_); }
  bool splits(const Problem& p) const { return !avx512_ || may_split(p); }

  /// Each tile by one thread, whatever thread that is: oneDNN meets no team of ours inside.
  void run_tiles(const Problem& p, int threads, float* workspace) {
    Tiled& all = tiled(p, threads);
    const std::int64_t own = all.scratch_bytes / std::int64_t{sizeof(float)};
    int status = dnnl_success;
#pragma omp parallel for schedule(dynamic) num_threads(threads) reduction(max : status)
    for (std::size_t at = 0; at < all.tiles.size(); ++at) {
      const Team alone(1);
      const auto thread = std::size_t(omp_get_thread_num());
      Made& made = all.made[all.shapes[at] * std::size_t(threads) + thread];
      float* own_workspace = workspace + std::int64_t(thread) * own;
      status = std::max<int>(status, execute(made, part(p, all.tiles[at]), streams_[thread], own_workspace));
    }
    check(p, dnnl_status_t(status));
  }

  Made& made(const Problem& p, int threads) {
    const Key key = key_of(p, threads);
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    return made_.emplace(key, onednn::make(key, engine_)).first->second;
  }

  Tiled& tiled(const Problem& p, int threads) {
    const Key key = key_of(p, threads);
    if (const auto found = tiled_.find(key); found != tiled_.end()) return found->second;
    while (streams_.size() < std::size_t(threads)) streams_.emplace_back(engine_);
    Tiled all;
    constexpr int usual_threads = 16;
    all.tiles = product::tiles(p.m, p.n, {.threads = size_decides(p) ? usual_threads : threads});
    std::vector<Key> keys;
    for (const Tile& tile : all.tiles) {
      const Key one = key_of(part(p, tile), 1);
      all.shapes.push_back(std::size_t(std::ranges::find(keys, one) - keys.begin()));
      if (all.shapes.back() == keys.size()) keys.push_back(one);
    }
    for (const Key& one : keys)
      for (int thread = 0; thread < threads; ++thread) all.made.push_back(onednn::make(one, engine_));
    for (const Made& made : all.made) all.scratch_bytes = std::max(all.scratch_bytes, made.scratch_bytes);
    return tiled_.emplace(key, std::move(all)).first->second;
  }

  bool avx512_ = has_avx512();
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<dnnl::stream> streams_;  // of threads that compute tiles
  std::mutex mutex_;
  std::unordered_map<Key, Made, Mix> made_;
  std::unordered_map<Key, Tiled, Mix> tiled_;
};

}  // namespace

std::shared_ptr<product::Engine> open_onednn() { return std::make_shared<OneDnn>(); }

}  // namespace weft
