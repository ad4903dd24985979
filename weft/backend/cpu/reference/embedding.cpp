// Rows of a table by id, and back.
#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {

using reference::LoadedRows;

void ReferenceKernels::gather(const Tensor& out, const Tensor& table, const Tensor& ids, std::int64_t first) {
  called();
  const LoadedRows to(out);
  const LoadedRows from(table);
  const std::vector<double> zeros(std::size_t(to.width()));
  const std::span<const std::int32_t> wanted = ids.as<std::int32_t>();
  for (std::int64_t i = 0; i < to.count(); ++i) {
    const std::int64_t row = wanted[std::size_t(i)] - first;
    to.store(i, row >= 0 && row < table.dim(0) ? from.load(row) : zeros);
  }
}

void ReferenceKernels::scatter_add(const Tensor& dtable, const Tensor& dout, const Tensor& ids,
                                   std::int64_t first) {
  called();
  const LoadedRows to(dtable);
  const LoadedRows from(dout);
  const std::span<const std::int32_t> wanted = ids.as<std::int32_t>();
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const std::int64_t row = wanted[std::size_t(i)] - first;
    if (row < 0 || row >= dtable.dim(0)) continue;
    std::vector<double> sum = to.load(row);
    const std::vector<double> more = from.load(i);
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += more[j];
    to.store(row, sum);
  }
}

}  // namespace weft
