// What stands before a norm: the sum of a residual and of what dropout leaves of a row. It goes out to memory
// and, for the norm, into a cache; of wide rows its statistics are added up on the way.
#include "weft/backend/cpu/fast/drops.h"
#include "weft/backend/cpu/fast/loops/norm.h"

namespace weft::fast::WEFT_ISA {
namespace {

[[gnu::always_inline]] inline Out copy_of(const SumRow& row) { return {row.copy, row.sum.type, false}; }
[[gnu::always_inline]] inline In stored(const SumRow& row) { return {row.copy, row.sum.type}; }
[[gnu::always_inline]] inline Walk walk_of(const SumRow& row) {
  return fast::walk_of(row.sum.type, row.x.type, row.residual.type);
}

/// The row from element i on.
[[gnu::always_inline]] inline SumRow row_after(SumRow row, std::int64_t i) {
  row.copy = static_cast<char*>(row.copy) + i * size_of(row.sum.type);
  row.sum = after(row.sum, i);
  row.x = after(row.x, i);
  row.residual = after(row.residual, i);
  if (row.bias) row.bias += i;
  row.drop.first += std::uint64_t(i);
  return row;
}

template <class At, class Kept>
[[gnu::always_inline]] inline F value(const SumRow& row, At at, const Kept& keep) {
  F in = load(row.x, at);
  if (row.bias) in = in + along(row.bias, at);
  return load(row.residual, at) + keep(in);
}

/// Stores thirty-two, and adds them up as they are stored.
template <NormKind kind>
[[gnu::always_inline]] inline void keep_two(const SumRow& row, Evens a, Odds b, F x, F y, int i,
                                            Moments& sums) {
  const Halves both = halves(x, y);
  store_halves(row.sum, a.at, both);
  store_halves(copy_of(row), a.at, both);
  F even, odd;
  for (int p = 0; p < parts; ++p) {
    even.part[p] = widened(a, (Words)both.part[p]);
    odd.part[p] = widened(b, (Words)both.part[p]);
  }
  sums.template add<kind>(a, even, i);
  sums.template add<kind>(b, odd, i + 1);
}
template <NormKind kind>
[[gnu::always_inline]] inline void keep_two(const SumRow& row, Plain a, Plain b, F x, F y, int i,
                                            Moments& sums) {
  store_two(row.sum, a.at, x, y);
  store_two(copy_of(row), a.at, x, y);
  sums.template add<kind>(a, x, i);
  sums.template add<kind>(b, y, i + 1);
}

/// The row before, written by thirty-twos while this one is summed: one of the two is mostly arithmetic, the
/// other mostly memory.
template <NormKind kind>
struct Due {
  [[gnu::always_inline]] Due(const NormDue* due, std::int64_t from) : wanted(due != nullptr) {
    if (!due) return;
    y = after(due->y, from);
    value = {after(due->x, from), due->stats, due->gain + from, due->bias ? due->bias + from : nullptr};
  }
  template <class A, class B>
  [[gnu::always_inline]] void write(A a, B b) const {
    if (!wanted) return;
    const Rough first = value(a);
    store_both(y, a, b, first, value(b));
  }
  [[gnu::flatten]] void write_all(Walk walk, std::int64_t n) const {
    if (wanted)
      map(
          y, walk, n, [&](auto at) __attribute__((always_inline)) { return value(at); });
  }
  bool wanted;
  Out y = {};
  Normalized<kind> value = {};
};

/// The row's start, whole sixty-fours of it, summed and added up in one go; its length.
template <NormKind kind>
[[gnu::flatten]] std::int64_t sum_start(const SumRow& row, const Due<kind>& before, std::int64_t n,
                                        Moments& out) {
  const Walk walk = walk_of(row);
  Moments sums = out;
  std::int64_t done = 0;
  if (row.drop.below == 0) {
    done = n / (2 * pair) * (2 * pair);
    const auto keep = [](F x) __attribute__((always_inline)) { return x; };
    const auto two = [&](auto a, auto b, int i) __attribute__((always_inline)) {
      ask_ahead(row.x, a, i);
      ask_ahead(row.residual, a, i);
      const F first = value(row, a, keep);
      keep_two<kind>(row, a, b, first, value(row, b, keep), i, sums);
      before.write(a, b);
    };
    each_of_four(walk, done, two, [](auto, int) {});
  } else {
    done = each_drawn(
        {row.drop, row.x, row.residual}, walk,
        n, [&](auto a, auto b, int i, const auto& keep_of) __attribute__((always_inline)) {
          const F first = value(row, a, keep_of(a));
          keep_two<kind>(row, a, b, first, value(row, b, keep_of(b)), i, sums);
          before.write(a, b);
        });
  }
  out = sums;
  return done;
}

template <NormKind kind>
[[gnu::flatten]] void look(Walk walk, In x, std::int64_t n, Moments& out) {
  Moments sums = out;
  each_of_four(
      walk,
      n, [&](auto at, int i) __attribute__((always_inline)) { sums.template add<kind>(at, load(x, at), i); });
  out = sums;
}

template <NormKind kind>
NormRow sum_wide(const SumRow& row, const NormDue* before, const NormShape& shape) {
  // The mean of the first elements is asked for before the others come.
  constexpr std::int64_t head = kind == NormKind::layer ? 128 : 0;
  static_assert(head % (2 * pair) == 0 && head <= narrow_row);
  const Walk walk = walk_of(row);
  Moments sums = {0.0F, {}, {}};
  if (head > 0) {
    norm_sum(row, head);
    sums.center = near_mean(walk, stored(row));
    look<kind>(walk, stored(row), head, sums);
    Due<kind>(before, 0).write_all(walk, head);
  }
  std::int64_t done = head;
  if (walk != Walk::mixed)
    done += sum_start<kind>(row_after(row, head), Due<kind>(before, head), shape.n - head, sums);
  if (done < shape.n) {
    Due<kind>(before, done).write_all(walk, shape.n - done);
    const SumRow rest = row_after(row, done);
    norm_sum(rest, shape.n - done);
    look<kind>(walk, stored(rest), shape.n - done, sums);
  }
  return stats_of<kind>(walk, stored(row), sums, shape);
}

}  // namespace

[[gnu::flatten]] void norm_sum(const SumRow& row, std::int64_t n) {
  const Outs<2> both = {{row.sum, copy_of(row)}};
  map_kept(both, {row.drop, row.x, row.residual}, n, [=](auto at, auto keep) {
    const F total = value(row, at, keep);
    return Values<2>{{total, total}};
  });
}

NormRow norm_sum_wide(const SumRow& row, const NormDue* before, const NormShape& shape) {
  if (shape.kind == NormKind::layer) return sum_wide<NormKind::layer>(row, before, shape);
  return sum_wide<NormKind::rms>(row, before, shape);
}

}  // namespace weft::fast::WEFT_ISA
