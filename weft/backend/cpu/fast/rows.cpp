// Rows found, moved and added by index. What is added to a row is added in ascending order: each thread has
// its own columns.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;

namespace {

void check(const char* op, const Tensor& index, std::int64_t rows) {
  const auto* wanted = index.data<std::int32_t>();
  for (std::int64_t i = 0; i < index.elements(); ++i)
    if (wanted[i] >= rows)
      fail(Kind::shape, op, ": index ", wanted[i], " at ", i, ", but there are ", rows, " rows");
}

/// out[i] = from[wanted[i] - first], zeros where there is no such row.
struct Moved {
  Lines to, from;
  const std::int32_t* wanted;
  std::int64_t rows, first;

  void run(const fast::Loops& loops, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = std::int64_t{wanted[i]} - first;
      if (row >= 0 && row < rows)
        loops.elementwise.copy(to.out(i), from.in(row), to.width());
      else
        loops.elementwise.fill(to.out(i), 0, to.width());
    }
    loops.elementwise.finish();
  }
};

/// to[wanted[i] - first] += weight[i] from[i]
struct Added {
  Lines to, from;
  const std::int32_t* wanted;
  const float* weight;  // or null
  std::int64_t rows, first;

  /// Columns [16 begin, 16 end).
  void run(const fast::Loops& loops, std::int64_t begin, std::int64_t end) const {
    const std::int64_t column = 16 * begin;
    const std::int64_t n = std::min(16 * end, to.width()) - column;
    for (std::int64_t i = 0; i < from.count(); ++i) {
      const std::int64_t row = std::int64_t{wanted[i]} - first;
      if (row < 0 || row >= rows) continue;
      const fast::In x = from.in(i);
      const fast::Out out = to.out(row);
      loops.elementwise.add_scaled(
          {static_cast<std::byte*>(out.to) + column * size_of(out.type), out.type, false},
          {static_cast<const std::byte*>(x.from) + column * size_of(x.type), x.type}, weight ? weight[i] : 1,
          n);
    }
  }
};

}  // namespace

void FastKernels::gather(const Tensor& out, const Tensor& table, const Tensor& ids, std::int64_t first) {
  if (!ready({&out, &table}) || !ids.contiguous()) return ReferenceKernels::gather(out, table, ids, first);
  const Moved moved = {Lines(out, {}), Lines(table), ids.data<std::int32_t>(), table.dim(0), first};
  in_parallel(threads_, moved.to.count(), moved.to.elements(),
              [&](std::int64_t begin, std::int64_t end) { moved.run(loops_, begin, end); });
}

void FastKernels::gather_rows(const Tensor& out, const Tensor& x, const Tensor& index) {
  if (!ready({&out, &x}) || !index.contiguous()) return ReferenceKernels::gather_rows(out, x, index);
  check("gather_rows", index, x.dim(0));
  const Moved moved = {Lines(out, {}), Lines(x), index.data<std::int32_t>(), x.dim(0), 0};
  in_parallel(threads_, moved.to.count(), moved.to.elements(),
              [&](std::int64_t begin, std::int64_t end) { moved.run(loops_, begin, end); });
}

void FastKernels::scatter_add(const Tensor& dtable, const Tensor& dout, const Tensor& ids,
                              std::int64_t first) {
  if (!ready({&dtable, &dout}) || !ids.contiguous())
    return ReferenceKernels::scatter_add(dtable, dout, ids, first);
  const Added added = {Lines(dtable), Lines(dout), ids.data<std::int32_t>(), nullptr, dtable.dim(0), first};
  in_parallel(threads_, (added.to.width() + 15) / 16, added.from.elements(),
              [&](std::int64_t begin, std::int64_t end) { added.run(loops_, begin, end); });
}

void FastKernels::scatter_add_rows(const Tensor& out, const Tensor& x, const Tensor& index,
                                   const Tensor& weight) {
  if (!ready({&out, &x}) || !index.contiguous() || (weight && !weight.contiguous()))
    return ReferenceKernels::scatter_add_rows(out, x, index, weight);
  check("scatter_add_rows", index, out.dim(0));
  const Added added = {
      Lines(out), Lines(x), index.data<std::int32_t>(), weight ? weight.data<float>() : nullptr,
      out.dim(0), 0};
  in_parallel(threads_, (added.to.width() + 15) / 16, added.from.elements(),
              [&](std::int64_t begin, std::int64_t end) { added.run(loops_, begin, end); });
}

namespace {

/// The k greatest in descending order, by insertion. A NaN counts as the greatest, so that it is chosen and
/// seen.
template <class T>
void choose_row(const T* x, std::int64_t n, T* values, std::int32_t* indices, std::int64_t k) {
  const auto rank = [](T a) { return std::isnan(a) ? std::numeric_limits<T>::infinity() : a; };
  std::int64_t held = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const T mine = rank(x[j]);
    if (held == k && !(mine > rank(values[k - 1]))) continue;
    std::int64_t place = held < k ? held++ : k - 1;
    for (; place > 0 && mine > rank(values[place - 1]); --place) {
      values[place] = values[place - 1];
      indices[place] = indices[place - 1];
    }
    values[place] = x[j];
    indices[place] = std::int32_t(j);
  }
}

}  // namespace

void FastKernels::top_k(const Tensor& values, const Tensor& indices, const Tensor& x) {
  if (!fast::in_lines({&x}) || !values.contiguous() || !indices.contiguous() || values.elements() == 0)
    return ReferenceKernels::top_k(values, indices, x);
  const Lines rows(x);
  const std::int64_t k = values.dim(-1);
  auto* places = indices.data<std::int32_t>();
  const auto choose = [&]<class T>() {
    T* chosen = values.data<T>();
    in_parallel(threads_, rows.count(), rows.elements(), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        choose_row(reinterpret_cast<const T*>(rows.at(i)), rows.width(), chosen + i * k, places + i * k, k);
    });
  };
  if (x.dtype() == Dtype::f64) return choose.operator()<double>();
  choose.operator()<float>();
}

}  // namespace weft
