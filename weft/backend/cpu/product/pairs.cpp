#include "weft/backend/cpu/product/pairs.h"

#include <algorithm>
#include <cstdint>

namespace weft::product {
namespace {

using fast::Type;

/// Rows of k side by side begin where a word may, each of them.
bool lies_in_words(const Matrix& m) {
  return m.row % 2 == 0 && reinterpret_cast<std::uintptr_t>(m.from) % sizeof(float) == 0;
}

/// A matrix of words: of f32, by their size, where k's lie side by side.
Matrix words(const Matrix& m, bool rows_are_k) {
  if (rows_are_k) return {m.from, m.type, 2 * m.row};
  return {m.from, Type::f32, m.row / 2};
}

Problem last_alone(Problem p) {
  const auto past = [&](Matrix m, bool rows_are_k) {
    const std::int64_t elements = (p.k - 1) * (rows_are_k ? m.row : 1);
    m.from = static_cast<const char*>(m.from) + elements * size_of(m.type);
    return m;
  };
  p.a = past(p.a, p.a_turned);
  p.b = past(p.b, !p.b_turned);
  p.accumulate = p.accumulate || p.k > 1;
  p.k = 1;
  return p;
}

}  // namespace

Problem in_words(Problem p) {
  p.a = words(p.a, p.a_turned);
  p.b = words(p.b, !p.b_turned);
  p.k /= 2;
  return p;
}

PairEngine::PairEngine(fast::InstructionSet set, const PairLoops& pairs)
    : own_(set), loops_(product::loops(set)) {
  loops_.multiply = pairs.multiply;
  loops_.multiply_few = pairs.multiply_few;
  loops_.panel_from_rows = pairs.panel_from_rows;
  loops_.sixes = pairs.sixes;
}

std::unique_ptr<PairEngine> PairEngine::open(fast::InstructionSet set) {
  const PairLoops* pairs = pair_loops(set);
  return pairs ? std::make_unique<PairEngine>(set, *pairs) : nullptr;
}

bool PairEngine::takes(const Problem& p) const {
  if (p.a.type != Type::bf16 || p.b.type != Type::bf16 || p.slabs > 1 || p.has_bias) return false;
  if (p.k % 2 != 0 && p.out.type != Type::f32) return false;
  return (p.a_turned || lies_in_words(p.a)) && (!p.b_turned || lies_in_words(p.b));
}

std::int64_t PairEngine::bytes(const Problem& p, int threads) {
  Problem alone = p;
  alone.k = 1;
  const std::int64_t last = p.k % 2 != 0 ? own_.bytes(alone, threads) : 0;
  return std::max(last, p.k > 1 ? plan(in_words(p).form(), threads).bytes() : 0);
}

std::int64_t PairEngine::grouped_bytes(const Problem& most, int threads) {
  const std::int64_t last = own_.grouped_bytes(most, threads);
  if (most.k < 2) return last;
  return std::max(last, product::grouped_bytes(in_words(most).form(), most.a_turned, threads));
}

void PairEngine::run(const Problem& p, int threads, float* workspace) {
  if (p.k > 1) product::run(in_words(p), loops_, threads, workspace);
  if (p.k % 2 != 0) own_.run(last_alone(p), threads, workspace);
}

}  // namespace weft::product
