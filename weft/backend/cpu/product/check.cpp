// Small products, computed whole and in parts, compared as bytes.
#include "weft/backend/cpu/product/check.h"

#include <cstring>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/half.h"
#include "weft/base/random.h"

namespace weft::product {
namespace {

/// Numbers in [-0.5, 0.5) that make every rounding visible, as bytes of a type. A congruence is enough, and
/// quick.
template <class T>
std::vector<std::byte> numbers_of(std::int64_t count, std::uint32_t seed) {
  std::vector<std::byte> bytes(std::size_t(count) * sizeof(T));
  std::uint32_t state = seed;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    state = state * 1664525U + 1013904223U;
    const T x(unit_float(state) - 0.5F);
    std::memcpy(bytes.data() + i, &x, sizeof x);
  }
  return bytes;
}

std::vector<std::byte> numbers(fast::Type type, std::int64_t count, std::uint32_t seed) {
  if (type == fast::Type::bf16) return numbers_of<bf16>(count, seed);
  if (type == fast::Type::f16) return numbers_of<f16>(count, seed);
  return numbers_of<float>(count, seed);
}

struct Trial {
  CutForm form;
  std::int64_t m, n;
};

class Tried {
 public:
  Tried(Engine& engine, const Trial& t)
      : engine_(engine),
        t_(t),
        f_(t.form),
        a_(numbers(f_.type, t.m * f_.k, 1)),
        b_(numbers(f_.type, f_.k * t.n, 2)),
        bias_(numbers(f_.type, t.n, 3)),
        old_(numbers(f_.out, t.m * t.n, 4)) {
    whole_.m = t.m;
    whole_.n = t.n;
    whole_.k = f_.k;
    whole_.a = {a_.data(), f_.type, f_.a_turned ? t.m : f_.k};
    whole_.b = {b_.data(), f_.type, f_.b_turned ? f_.k : t.n};
    whole_.a_turned = f_.a_turned;
    whole_.b_turned = f_.b_turned;
    whole_.out = {nullptr, f_.out, false};
    whole_.out_row = t.n;
    whole_.accumulate = f_.accumulate;
    whole_.has_bias = f_.bias;
    whole_.bias = {bias_.data(), f_.type};
  }

  bool taken() const { return engine_.takes(whole_); }

  struct Box {
    std::int64_t i, m, j, n;
  };
  Box all() const { return {0, t_.m, 0, t_.n}; }

  void compute_whole(int threads) {
    whole_out_ = old_;
    block(whole_out_, all(), threads);
  }

  /// Whether a box computed alone has the bytes it has in the whole.
  bool same(Box box, int threads) {
    std::vector<std::byte> out = old_;
    block(out, box, threads);
    const std::int64_t size = size_of(f_.out);
    for (std::int64_t i = box.i; i < box.i + box.m; ++i) {
      const std::int64_t at = (i * t_.n + box.j) * size;
      if (std::memcmp(out.data() + at, whole_out_.data() + at, std::size_t(box.n * size)) != 0) return false;
    }
    return true;
  }

 private:
  void block(std::vector<std::byte>& out, Box box, int threads) {
    Problem p = whole_;
    p.m = box.m;
    p.n = box.n;
    p.a.from = a_.data() + box.i * (f_.a_turned ? 1 : f_.k) * size_of(f_.type);
    p.b.from = b_.data() + box.j * (f_.b_turned ? f_.k : 1) * size_of(f_.type);
    p.bias.from = bias_.data() + box.j * size_of(f_.type);
    p.out.to = out.data() + (box.i * t_.n + box.j) * size_of(f_.out);
    std::vector<float> workspace(std::size_t(engine_.bytes(p, threads)) / 4 + 32);
    engine_.run(p, threads, aligned(workspace.data()));
  }

  static float* aligned(float* memory) {
    const auto ahead = -reinterpret_cast<std::intptr_t>(memory) & 63;
    return memory + ahead / std::intptr_t(sizeof(float));
  }

  Engine& engine_;
  Trial t_;
  CutForm f_;
  std::vector<std::byte> a_, b_, bias_, old_, whole_out_;
  Problem whole_;
};

std::string cutting_changes(Engine& engine, const Trial& t, int threads) {
  Tried tried(engine, t);
  if (!tried.taken()) return "";
  tried.compute_whole(threads);
  const auto [m, n] = std::pair(t.m, t.n);
  const auto at = [&](const char* how) {
    return text("changes bits when ", how, " (k ", t.form.k,
                t.form.a_turned ? ", first operand transposed" : "", ")");
  };
  if (threads > 1 && !tried.same(tried.all(), 1)) return at("threads are fewer");
  for (const std::int64_t rows : {std::int64_t(1), std::int64_t(5), m / 2})
    if (!tried.same({0, rows, 0, n}, 1) || !tried.same({m - rows, rows, 0, n}, threads))
      return at("rows are cut");
  for (const std::int64_t columns : {std::int64_t(1), std::int64_t(5), n / 2})
    if (!tried.same({0, m, 0, columns}, 1) || !tried.same({0, m, n - columns, columns}, 1))
      return at("columns are cut");
  return tried.same({m / 2, 1, n / 2, 1}, 1) ? "" : at("one element is alone");
}

// A long k is what tempts a library to split it, with few rows most of all.
std::int64_t many_rows(std::int64_t k) { return k > 1024 ? 66 : 260; }

}  // namespace

CutForm cut_form(const Problem& p) {
  return {.k = p.k / p.slabs,
          .type = p.a.type,
          .out = p.out.type,
          .a_turned = p.a_turned,
          .b_turned = p.b_turned,
          .accumulate = p.accumulate,
          .bias = p.has_bias};
}

std::string cutting_changes(Engine& engine, const CutForm& form, int threads) {
  for (const auto& [m, n] :
       {std::pair(std::int64_t{11}, std::int64_t{100}), {many_rows(form.k), 23}, {70, 200}}) {
    const std::string found = cutting_changes(engine, {.form = form, .m = m, .n = n}, threads);
    if (!found.empty()) return found;
  }
  if (form.out == fast::Type::f32) return "";
  CutForm in_f32 = form;
  in_f32.out = fast::Type::f32;
  return cutting_changes(engine, in_f32, threads);
}

std::string cutting_changes(Engine& engine, fast::Type type, int threads) {
  int count = 0;
  for (const std::int64_t k : {40, 768, 2100}) {
    for (const bool turned : {false, true}) {
      // Each pair of options is met with both values somewhere; all of them with all would take too long.
      ++count;
      const Trial t{.form = {.k = k,
                             .type = type,
                             .out = fast::Type::f32,
                             .a_turned = turned,
                             .b_turned = count % 3 == 0,
                             .accumulate = turned,
                             .bias = !turned},
                    .m = count % 2 == 0 ? 11 : many_rows(k),
                    .n = count % 2 == 0 ? 100 : 23};
      const std::string found = cutting_changes(engine, t, threads);
      if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace weft::product

namespace weft {

std::string ProductTrials::cutting_changes(product::Engine& engine, fast::Type type, int threads) {
  const std::lock_guard lock(mutex_);
  const auto [said, is_new] = said_.try_emplace({engine.name(), type, threads});
  if (is_new) said->second = product::cutting_changes(engine, type, threads);
  return said->second;
}

bool ProductTrials::holds(product::Engine& engine, const product::CutForm& form, int threads) {
  const std::lock_guard lock(mutex_);
  const auto [held, is_new] = holds_.try_emplace({engine.name(), form, threads});
  if (is_new) held->second = product::cutting_changes(engine, form, threads).empty();
  return held->second;
}

}  // namespace weft
