// The library's bf16 products of groups of rows, on the tiles of AMX.
//
// Groups have other sizes in every step, and the library makes something for each size that it meets. So rows
// are taken in whole blocks, which it reads where they lie, and what is left over is copied and filled up
// with zeros: of a form of product, so many sizes are all there ever are, and all are made when the form is
// first met.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "weft/backend/cpu/fast/instruction_set.h"
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

constexpr std::int64_t block = 512, unit = 32;  // rows of a group that are multiplied at once
constexpr std::int64_t least_side = 64;         // of a weight
/// In which order the library adds to what is there depends on the size: a gradient's tiles are the same for
/// any number of threads.
constexpr int usual_threads = 16;

std::int64_t whole_units(std::int64_t rows) { return (rows + unit - 1) / unit * unit; }

/// What all groups of a form share: the tiles of what is not rows of a group, a primitive for each of their
/// shapes, size of a block, whether it is added to what is there, and thread.
struct Form {
  std::vector<Tile> tiles;
  std::vector<std::size_t> shapes;  // of tiles
  std::vector<Made> made;
  std::size_t threads = 0;
  // Floats: the library's and those of what is filled up, of a thread each, and of what all read, filled up.
  std::int64_t scratch = 0, own = 0, shared = 0;

  std::int64_t floats() const { return shared + std::int64_t(threads) * (scratch + own); }
};

/// Which primitive. No unit: a whole block, read where it lies.
struct Which {
  std::size_t shape, units;
  bool adds;
  std::size_t thread;
};
constexpr std::size_t sizes = block / unit + 1;

class InBlocks final : public product::Engine {
 public:
  InBlocks() : engine_(dnnl::engine::kind::cpu, 0), loops_(fast::loops(fast::best_here()).elementwise) {}

  const char* name() const override { return "oneDNN in blocks of rows"; }

  bool takes(const Problem& p) const override {
    if (p.a.type != Type::bf16 || p.b.type != Type::bf16 || p.slabs > 1 || p.has_bias) return false;
    if (p.accumulate && p.out.type != Type::f32) return false;
    if (p.a_turned) return p.out.type == Type::f32 && !p.b_turned && std::min(p.m, p.n) >= least_side;
    return std::min(p.n, p.k) >= least_side;
  }

  std::int64_t grouped_bytes(const Problem& p, int threads) override {
    return takes(p) ? bytes(p, threads) : 0;
  }
  std::int64_t bytes(const Problem& p, int threads) override {
    const std::lock_guard lock(mutex_);
    return form(p, threads).floats() * std::int64_t{sizeof(float)};
  }

  void run(const Problem& p, int threads, float* workspace) override {
    const std::lock_guard lock(mutex_);
    Form& all = form(p, threads);
    const Job job{*this, all, p, workspace};
    onednn::check(p, dnnl_status_t(p.a_turned ? job.sum_rows() : job.multiply_rows()));
  }

 private:
  struct Job {
    InBlocks& engine;
    Form& all;
    const Problem& p;
    float* workspace;

    struct Rows {
      std::int64_t from, count;
    };

    /// Rows times a weight.
    int multiply_rows() const {
      const std::int64_t blocks = (p.m + block - 1) / block, tiles = std::ssize(all.tiles);
      const std::int64_t left = p.m % block;
      int status = dnnl_success;
#pragma omp parallel num_threads(int(all.threads)) reduction(max : status)
      {
        if (left > 0) {
#pragma omp for schedule(static)
          for (std::int64_t i = 0; i < whole_units(left); ++i) fill_row(halves(workspace), i, left);
        }
        const onednn::Team alone(1);
#pragma omp for schedule(dynamic)
        for (std::int64_t i = 0; i < blocks * tiles; ++i) {
          const std::int64_t from = i / tiles * block;
          status = std::max(status, multiply({from, std::min(block, p.m - from)}, std::size_t(i % tiles)));
        }
      }
      return status;
    }

    void fill_row(std::uint16_t* to, std::int64_t i, std::int64_t left) const {
      if (i < left)
        std::memcpy(to + i * p.k, past(p.a, p.m - left + i), std::size_t(p.k) * sizeof *to);
      else
        std::fill_n(to + i * p.k, p.k, std::uint16_t{0});
    }

    int multiply(Rows rows, std::size_t at) const {
      const Tile& tile = all.tiles[at];
      Problem one = part(p, {rows.from, rows.count, tile.j, tile.n});
      if (rows.count == block) return execute(one, {all.shapes[at], 0, p.accumulate, thread()});
      float* room = own() + all.scratch;
      one.a.from = halves(workspace);
      const fast::Out to{one.out.to, one.out.type, false};
      one.out.to = room;
      const int status =
          execute(one, {all.shapes[at], std::size_t(whole_units(rows.count) / unit), false, thread()});
      const std::int64_t size = size_of(to.type);
      for (std::int64_t i = 0; i < rows.count; ++i) {
        const fast::Out row{static_cast<char*>(to.to) + i * p.out_row * size, to.type, false};
        const fast::In sums{reinterpret_cast<const char*>(room) + i * tile.n * size, to.type};
        if (p.accumulate)
          engine.loops_.add(row, {row.to, row.type}, sums, tile.n);
        else
          engine.loops_.copy(row, sums, tile.n);
      }
      return status;
    }

    /// A weight's gradient: a sum over the rows of a group.
    int sum_rows() const {
      int status = dnnl_success;
#pragma omp parallel for schedule(dynamic) num_threads(int(all.threads)) reduction(max : status)
      for (std::size_t at = 0; at < all.tiles.size(); ++at) {
        const onednn::Team alone(1);
        for (std::int64_t from = 0; from < p.k; from += block)
          status = std::max(status, sum({from, std::min(block, p.k - from)}, at));
      }
      return status;
    }

    int sum(Rows rows, std::size_t at) const {
      const Tile& tile = all.tiles[at];
      Problem one = part(p, tile);
      one.a.from = past(one.a, rows.from);
      one.b.from = past(one.b, rows.from);
      const bool adds = p.accumulate || rows.from > 0;
      if (rows.count == block) return execute(one, {all.shapes[at], 0, adds, thread()});
      std::uint16_t* room = halves(own() + all.scratch);
      one.a.from = filled_up(room, one.a, {rows.count, tile.m});
      one.b.from = filled_up(room + block * tile.m, one.b, {rows.count, tile.n});
      return execute(one, {all.shapes[at], std::size_t(whole_units(rows.count) / unit), adds, thread()});
    }

    static const void* past(const Matrix& m, std::int64_t rows) {
      return static_cast<const std::uint16_t*>(m.from) + rows * m.row;
    }

    struct Some {
      std::int64_t rows, columns;
    };
    static const void* filled_up(std::uint16_t* to, const Matrix& from, const Some& some) {
      for (std::int64_t i = 0; i < some.rows; ++i)
        std::memcpy(to + i * some.columns, past(from, i), std::size_t(some.columns) * sizeof *to);
      std::fill(to + some.rows * some.columns, to + whole_units(some.rows) * some.columns, std::uint16_t{0});
      return to;
    }

    int execute(const Problem& one, const Which& which) const {
      return onednn::execute(made(all, which), one, engine.streams_[which.thread], own());
    }
    static std::size_t thread() { return std::size_t(omp_get_thread_num()); }
    float* own() const { return workspace + all.shared + std::int64_t(thread()) * (all.scratch + all.own); }
    static std::uint16_t* halves(float* room) { return reinterpret_cast<std::uint16_t*>(room); }
  };

  static Made& made(Form& all, const Which& w) {
    return all.made[((w.shape * sizes + w.units) * 2 + std::size_t(w.adds)) * all.threads + w.thread];
  }

  Form& form(const Problem& p, int threads) {
    Key key = onednn::key_of(p, threads);
    (p.a_turned ? key.k : key.m) = 0;
    if (const auto found = forms_.find(key); found != forms_.end()) return found->second;
    while (streams_.size() < std::size_t(threads)) streams_.emplace_back(engine_);
    Form all;
    all.threads = std::size_t(threads);
    all.tiles = p.a_turned ? product::tiles(p.m, p.n, {.threads = usual_threads, .least = least_side})
                           : product::tiles(least_side, p.n, {.threads = threads, .least = least_side});
    std::vector<Tile> shapes;
    for (const Tile& tile : all.tiles) {
      const auto same = [&](const Tile& x) { return x.m == tile.m && x.n == tile.n; };
      all.shapes.push_back(std::size_t(std::ranges::find_if(shapes, same) - shapes.begin()));
      if (all.shapes.back() == shapes.size()) shapes.push_back(tile);
      all.own = std::max(all.own, room(p, tile));
    }
    for (const Tile& shape : shapes) make_all(all, p, shape);
    for (const Made& made : all.made)
      all.scratch = std::max(all.scratch, made.scratch_bytes / std::int64_t{sizeof(float)});
    if (!p.a_turned) all.shared = line(block * p.k / 2);
    return forms_.emplace(key, std::move(all)).first->second;
  }

  /// Floats of what a thread fills up.
  static std::int64_t room(const Problem& p, const Tile& tile) {
    return line(p.a_turned ? block * (tile.m + tile.n) / 2 : block * tile.n);
  }
  static std::int64_t line(std::int64_t floats) { return (floats + 15) / 16 * 16; }

  void make_all(Form& all, const Problem& p, const Tile& tile) const {
    for (std::size_t units = 0; units < sizes; ++units)
      for (const bool adds : {false, true}) {
        const Key key = key_of(p, tile, units, adds);
        // Rows that are filled up have their result copied; whole blocks of rows add if the product does.
        const bool met = p.a_turned || (units == 0 ? adds == p.accumulate : !adds);
        for (std::size_t i = 0; i < all.threads; ++i)
          all.made.push_back(met ? onednn::make(key, engine_) : Made());
      }
  }

  static Key key_of(const Problem& p, const Tile& tile, std::size_t units, bool adds) {
    Key key = onednn::key_of(p, 1);
    const bool lies = units == 0;
    const std::int64_t rows = lies ? block : std::int64_t(units) * unit;
    key.m = p.a_turned ? tile.m : rows;
    key.n = tile.n;
    key.k = p.a_turned ? rows : p.k;
    key.adds = adds;
    if (lies) return key;
    key.a_row = p.a_turned ? tile.m : p.k;
    if (p.a_turned)
      key.b_row = tile.n;
    else
      key.out_row = tile.n;
    return key;
  }

  dnnl::engine engine_;
  const fast::ElementwiseLoops& loops_;
  std::vector<dnnl::stream> streams_;  // of threads
  std::mutex mutex_;
  std::unordered_map<Key, Form, onednn::Mix> forms_;
};

}  // namespace

std::shared_ptr<product::Engine> open_onednn_in_blocks() {
  return fast::runs_here(fast::InstructionSet::avx512_amx) ? std::make_shared<InBlocks>() : nullptr;
}

}  // namespace weft
