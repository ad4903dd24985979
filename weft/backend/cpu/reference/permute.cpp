// Choosing and moving rows. Indices are data, so their range is checked here.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;

/// A NaN counts as the greatest, so that it is chosen and seen.
double rank_of(double x) { return std::isnan(x) ? std::numeric_limits<double>::infinity() : x; }

/// The row that an index names, -1 for none.
std::int64_t checked(const char* op, std::span<const std::int32_t> index, std::int64_t i, std::int64_t rows) {
  const std::int64_t row = index[std::size_t(i)];
  if (row >= rows) fail(Kind::shape, op, ": index ", row, " at ", i, ", but there are ", rows, " rows");
  return row < 0 ? -1 : row;
}

}  // namespace

void ReferenceKernels::top_k(const Tensor& values, const Tensor& indices, const Tensor& x) {
  called();
  const LoadedRows from(x);
  const LoadedRows to(values);
  const LoadedRows places(indices);
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const std::vector<double> row = from.load(i);
    std::vector<std::size_t> order(row.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rank_of(row[a]) > rank_of(row[b]); });
    order.resize(std::size_t(to.width()));
    std::vector<double> chosen;
    for (const std::size_t place : order) chosen.push_back(row[place]);
    to.store(i, chosen);
    places.store(i, std::vector<double>(order.begin(), order.end()));
  }
}

void ReferenceKernels::gather_rows(const Tensor& out, const Tensor& x, const Tensor& index) {
  called();
  const LoadedRows to(out);
  const LoadedRows from(x);
  const std::vector<double> zeros(std::size_t(to.width()));
  const std::span<const std::int32_t> wanted = index.as<std::int32_t>();
  for (std::int64_t i = 0; i < to.count(); ++i) {
    const std::int64_t row = checked("gather_rows", wanted, i, x.dim(0));
    to.store(i, row < 0 ? zeros : from.load(row));
  }
}

void ReferenceKernels::scatter_add_rows(const Tensor& out, const Tensor& x, const Tensor& index,
                                        const Tensor& weight) {
  called();
  const LoadedRows to(out);
  const LoadedRows from(x);
  const std::vector<double> weights =
      weight ? reference::load(weight) : std::vector<double>(std::size_t(from.count()), 1.0);
  const std::span<const std::int32_t> wanted = index.as<std::int32_t>();
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const std::int64_t row = checked("scatter_add_rows", wanted, i, out.dim(0));
    if (row < 0) continue;
    std::vector<double> sum = to.load(row);
    const std::vector<double> more = from.load(i);
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += weights[std::size_t(i)] * more[j];
    to.store(row, sum);
  }
}

}  // namespace weft
