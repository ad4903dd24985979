// The product's inner loops over pairs of bf16: a word of an operand holds two numbers that follow each other
// in k, the first in its lower half, and one instruction adds the products of both.
#include "weft/backend/cpu/product/native/few.h"
#include "weft/backend/cpu/product/native/tile.h"

namespace weft::product::WEFT_ISA {

namespace {

struct Pairs {
  [[gnu::always_inline]] static Floats spread(const float* pair) {
    std::int32_t word;
    __builtin_memcpy(&word, pair, sizeof(word));
    return (Floats)(Ints{} + word);
  }
  [[gnu::always_inline]] static Floats add(Floats left, Floats right, Floats sum) {
    return (Floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)left, (__m512bh)right);
  }
};

void multiply(const Stripe& s) { multiply_as<Pairs>(s); }

void multiply_few(const FewRows& f) { multiply_few_as<Pairs, Whole32>(f); }

/// Two rows that follow each other, and lie half of `row` apart.
struct TwoRows {
  In first, second;
  TwoRows(Matrix m, std::int64_t i) : first(part(m, i, 0)), second(part(m, i, m.row / 2)) {}
  template <class At>
  [[gnu::always_inline]] F woven(At at) const {
    return as_floats((as_words(load(first, at)) >> 16) | as_words(load(second, at)));
  }
};

void ask_for_both(Matrix m, std::int64_t i, std::int64_t columns) {
  ask_for(m, i, columns);
  ask_for({part(m, 0, m.row / 2).from, m.type, m.row}, i, columns);
}

void panel_from_rows(float* to, Matrix b, std::int64_t k, std::int64_t columns) {
  for (std::int64_t i = 0; i < k; ++i) {
    ask_for_both(b, std::min(i + ahead, k - 1), columns);
    const TwoRows rows(b, i);
    for (std::int64_t j = 0; j < panel; j += lanes) {
      float* at = to + i * panel + j;
      if (j + lanes <= columns)
        store(at, rows.woven(Whole{j}));
      else if (j < columns)
        store(at, rows.woven(Tail{j, columns - j}));
      else
        store(at, all(0.0F));
    }
  }
}

void sixes(float* to, Matrix a, std::int64_t rows, std::int64_t k) {
  constexpr std::int64_t some = 3 * lanes;  // eight sixes
  float words[some];
  for (std::int64_t i = 0; i < k; ++i) {
    ask_for_both(a, std::min(i + ahead, k - 1), rows);
    const TwoRows two(a, i);
    for (std::int64_t from = 0; from < rows; from += some) {
      const std::int64_t count = std::min(some, rows - from);
      for (std::int64_t j = 0; j < count; j += lanes) {
        if (j + lanes <= count)
          store(words + j, two.woven(Whole{from + j}));
        else
          store(words + j, two.woven(Tail{from + j, count - j}));
      }
      float* six_rows = to + from * k + i * six;
      for (std::int64_t j = 0; j + six <= count; j += six, six_rows += six * k)
        __builtin_memcpy(six_rows, words + j, six * sizeof(float));
      __builtin_memcpy(six_rows, words + count / six * six, std::size_t(count % six) * sizeof(float));
    }
  }
}

}  // namespace

extern const PairLoops pair_loops;
const PairLoops pair_loops = {multiply, multiply_few, panel_from_rows, sixes};

}  // namespace weft::product::WEFT_ISA
