// Primitives are made once for each shape and found again without the heap; operands are read where they lie.
#include "weft/backend/cpu/onednn/engine.h"

#include <omp.h>

#include <algorithm>
#include <dnnl.hpp>
#include <mutex>
#include <unordered_map>

#include "weft/base/error.h"

namespace weft {
namespace {

using dnnl::memory;
using fast::Type;
using product::Matrix;
using product::Problem;

/// oneDNN splits a long k among threads, and then bits depend on m, n and threads: products walk k in pieces
/// of at most this.
constexpr std::int64_t longest_piece = 1024;

std::int64_t piece(const Problem& p) {
  const std::int64_t pieces = (p.k + longest_piece - 1) / longest_piece;
  return (p.k + pieces - 1) / pieces;
}

/// Sums of several pieces that become sixteen bits are taken in f32 and rounded once.
bool sums_apart(const Problem& p) { return p.out.type != Type::f32 && piece(p) < p.k; }
std::int64_t line(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
std::int64_t sums_bytes(const Problem& p) { return line(p.m * p.n * std::int64_t{sizeof(float)}); }
Problem to_sums(Problem p, float* sums) {
  p.out = {sums, Type::f32, false};
  p.out_row = p.n;
  return p;
}

memory::data_type type_of(Type type) {
  switch (type) {
    case Type::bf16:
      return memory::data_type::bf16;
    case Type::f16:
      return memory::data_type::f16;
    default:
      return memory::data_type::f32;
  }
}

/// Everything that a primitive is made for.
struct Key {
  std::int64_t m, n, k, a_row, b_row, out_row;
  Type type, out, bias;
  bool a_turned, b_turned, packed, adds, has_bias;
  int threads;
  bool operator==(const Key&) const = default;
};

struct Mix {
  std::size_t operator()(const Key& key) const {
    std::uint64_t h = 0;
    const auto add = [&h](std::uint64_t x) { h = (h ^ x) * 0x9E3779B97F4A7C15U + (h >> 29); };
    for (const std::int64_t x : {key.m, key.n, key.k, key.a_row, key.b_row, key.out_row})
      add(std::uint64_t(x));
    add(std::uint64_t(key.type) | std::uint64_t(key.out) << 2 | std::uint64_t(key.bias) << 4 |
        std::uint64_t(key.a_turned) << 6 | std::uint64_t(key.b_turned) << 7 | std::uint64_t(key.packed) << 8 |
        std::uint64_t(key.adds) << 9 | std::uint64_t(key.has_bias) << 10 | std::uint64_t(key.threads) << 11);
    return std::size_t(h);
  }
};

/// The calling thread's team for as long as this lives; other ranks have calling threads of their own.
class Team {
 public:
  explicit Team(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~Team() { omp_set_num_threads(before_); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  int before_;
};

struct Made {
  dnnl::matmul primitive;
  memory a, b, out, bias, scratch;
  std::int64_t scratch_bytes = 0;
};

/// Sums on their way to sixteen bits.
struct Shortened {
  dnnl::reorder primitive;
  memory from, to;
};

memory::desc rows_of(std::int64_t rows, std::int64_t columns, Type type, std::int64_t row, bool turned) {
  return {{rows, columns}, type_of(type), turned ? memory::dims{1, row} : memory::dims{row, 1}};
}

class OneDnn final : public product::Engine {
 public:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  const char* name() const override { return "oneDNN"; }

  bool takes(const Problem& p) const override {
    if (p.slabs > 1 || p.a.type == Type::f16 || (p.has_bias && p.bias.type == Type::f16)) return false;
    if (p.out.type != Type::f32 && p.accumulate) return false;
    return !(p.has_bias && p.accumulate);
  }

  // It splits a short k among threads too where the result is small.
  bool steady(const Problem& p) const override { return p.m >= 64 && p.n >= 64; }

  std::int64_t bytes(const Problem& p, int threads) override {
    const std::lock_guard lock(mutex_);
    const bool apart = sums_apart(p);
    std::int64_t most = 0;
    each_piece(apart ? to_sums(p, nullptr) : p,
               [&](const Problem& part) { most = std::max(most, made(part, threads).scratch_bytes); });
    return most + (apart ? sums_bytes(p) : 0);
  }

  void run(const Problem& p, int threads, float* workspace) override {
    const std::lock_guard lock(mutex_);
    if (!sums_apart(p)) return run_pieces(p, threads, workspace);
    run_pieces(to_sums(p, workspace), threads, workspace + sums_bytes(p) / std::int64_t{sizeof(float)});
    shorten(p, threads, workspace);
  }

  /// Of a long k it has none: pieces of that order cannot be told apart.
  std::int64_t packed_bytes(Type type, std::int64_t k, std::int64_t n) override {
    if (type == Type::f16 || k > longest_piece) return 0;
    const std::lock_guard lock(mutex_);
    return std::int64_t(packed(type, k, n).get_size());
  }

  void pack(void* to, Matrix b, bool turned, std::int64_t k, std::int64_t n, int threads) override {
    const std::lock_guard lock(mutex_);
    const Team team(threads);
    memory from(rows_of(k, n, b.type, b.row, turned), engine_, const_cast<void*>(b.from));
    memory into(packed(b.type, k, n), engine_, to);
    dnnl::reorder(from, into).execute(stream_, from, into);
    stream_.wait();
  }

 private:
  template <class Body>
  static void each_piece(const Problem& whole, const Body& body) {
    const std::int64_t size = size_of(whole.a.type);
    const std::int64_t step = piece(whole);
    for (std::int64_t k = 0; k < whole.k; k += step) {
      Problem p = whole;
      p.k = std::min(step, whole.k - k);
      const auto past = [size](const void* from, std::int64_t elements) {
        return from ? static_cast<const char*>(from) + elements * size : nullptr;
      };
      if (k > 0) {
        p.a.from = past(whole.a.from, k * (whole.a_turned ? whole.a.row : 1));
        p.b.from = past(whole.b.from, k * (whole.b_turned ? 1 : whole.b.row));
        p.accumulate = true;
        p.has_bias = false;
      }
      body(p);
    }
  }

  void run_pieces(const Problem& p, int threads, float* workspace) {
    each_piece(p, [&](const Problem& part) { run_piece(part, threads, workspace); });
  }

  /// The sums as p's result.
  void shorten(const Problem& p, int threads, float* sums) {
    const Key key{.m = p.m, .n = p.n, .out_row = p.out_row, .out = p.out.type, .threads = threads};
    const Team team(threads);
    auto found = shortened_.find(key);
    if (found == shortened_.end()) {
      Shortened made;
      made.from = memory(rows_of(p.m, p.n, Type::f32, p.n, false), engine_, nullptr);
      made.to = memory(rows_of(p.m, p.n, p.out.type, p.out_row, false), engine_, nullptr);
      made.primitive = dnnl::reorder(made.from, made.to);
      found = shortened_.emplace(key, std::move(made)).first;
    }
    Shortened& made = found->second;
    made.from.set_data_handle(sums);
    made.to.set_data_handle(p.out.to);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, made.from.get()}, {DNNL_ARG_TO, made.to.get()}};
    const dnnl_status_t status = dnnl_primitive_execute(made.primitive.get(), stream_.get(), 2, arguments);
    if (status != dnnl_success)
      fail(Kind::device, "oneDNN: rounding [", p.m, ", ", p.n, "] failed with status ", int(status));
  }

  /// The library's own order for a second operand, whatever the rows of the first.
  const memory::desc& packed(Type type, std::int64_t k, std::int64_t n) {
    const Key key{.n = n, .k = k, .type = type, .packed = true};
    if (const auto found = packed_.find(key); found != packed_.end()) return found->second;
    constexpr std::int64_t usual_rows = 1024;
    const auto any = memory::desc({k, n}, type_of(type), memory::format_tag::any);
    const dnnl::matmul::desc product(rows_of(usual_rows, k, type, k, false), any,
                                     rows_of(usual_rows, n, type, n, false));
    return packed_.emplace(key, dnnl::matmul::primitive_desc(product, engine_).weights_desc()).first->second;
  }

  Made& made(const Problem& p, int threads) {
    const Key key{.m = p.m,
                  .n = p.n,
                  .k = p.k,
                  .a_row = p.a.row,
                  .b_row = p.packed ? 0 : p.b.row,
                  .out_row = p.out_row,
                  .type = p.a.type,
                  .out = p.out.type,
                  .bias = p.bias.type,
                  .a_turned = p.a_turned,
                  .b_turned = p.b_turned,
                  .packed = p.packed,
                  .adds = p.accumulate,
                  .has_bias = p.has_bias,
                  .threads = threads};
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    return made_.emplace(key, make(key)).first->second;
  }

  Made make(const Key& key) {
    const Team team(key.threads);
    const memory::desc a = rows_of(key.m, key.k, key.type, key.a_row, key.a_turned);
    const memory::desc b = key.packed ? packed(key.type, key.k, key.n)
                                      : rows_of(key.k, key.n, key.type, key.b_row, key.b_turned);
    const memory::desc out = rows_of(key.m, key.n, key.out, key.out_row, false);
    const memory::desc bias({1, key.n}, type_of(key.bias), memory::format_tag::ab);
    dnnl::primitive_attr how;
    how.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (key.adds) {
      dnnl::post_ops then;
      then.append_sum(1.0F);
      how.set_post_ops(then);
    }
    const dnnl::matmul::desc what =
        key.has_bias ? dnnl::matmul::desc(a, b, bias, out) : dnnl::matmul::desc(a, b, out);
    const dnnl::matmul::primitive_desc chosen(what, how, engine_);
    Made made;
    made.primitive = dnnl::matmul(chosen);
    made.a = memory(a, engine_, nullptr);
    made.b = memory(b, engine_, nullptr);
    made.out = memory(out, engine_, nullptr);
    made.bias = memory(bias, engine_, nullptr);
    made.scratch = memory(chosen.scratchpad_desc(), engine_, nullptr);
    made.scratch_bytes = line(std::int64_t(chosen.scratchpad_desc().get_size()));
    return made;
  }

  void run_piece(const Problem& p, int threads, float* workspace) {
    Made& m = made(p, threads);
    m.a.set_data_handle(const_cast<void*>(p.a.from));
    m.b.set_data_handle(const_cast<void*>(p.b.from));
    m.out.set_data_handle(p.out.to);
    m.scratch.set_data_handle(workspace);
    if (p.has_bias) m.bias.set_data_handle(const_cast<void*>(p.bias.from));
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, m.a.get()},
                                         {DNNL_ARG_WEIGHTS, m.b.get()},
                                         {DNNL_ARG_DST, m.out.get()},
                                         {DNNL_ARG_SCRATCHPAD, m.scratch.get()},
                                         {DNNL_ARG_BIAS, m.bias.get()}};
    const Team team(threads);
    const dnnl_status_t status =
        dnnl_primitive_execute(m.primitive.get(), stream_.get(), p.has_bias ? 5 : 4, arguments);
    if (status != dnnl_success)
      fail(Kind::device, "oneDNN: product [", p.m, ", ", p.k, "] by [", p.k, ", ", p.n,
           "] failed with status ", int(status));
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::mutex mutex_;
  std::unordered_map<Key, Made, Mix> made_;
  std::unordered_map<Key, memory::desc, Mix> packed_;
  std::unordered_map<Key, Shortened, Mix> shortened_;
};

}  // namespace

std::shared_ptr<product::Engine> open_onednn() { return std::make_shared<OneDnn>(); }

}  // namespace weft
