// Rotary positions: (x, y) turns to (x cos - y sin, x sin + y cos), back with the other sign of sin.
#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;

/// Positions of [s, b], in order.
std::vector<std::int64_t> positions_of(const Tensor& x, const RopeArgs& how) {
  const std::vector<double> given = how.positions ? reference::load(how.positions) : std::vector<double>();
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < x.dim(0); ++i)
    for (std::int64_t b = 0; b < x.dim(1); ++b) {
      const std::int64_t at = how.positions && how.positions.rank() == 2 ? b * x.dim(0) + i : i;
      const std::int64_t position = how.positions ? std::int64_t(given[std::size_t(at)]) : i;
      if (position < 0 || position >= how.angles.dim(0))
        fail(Kind::shape, "rope: position ", position, " of step ", i, ", but angles for ", how.angles.dim(0),
             " positions");
      out.push_back(position);
    }
  return out;
}

}  // namespace

void ReferenceKernels::rope(const Tensor& x, const RopeArgs& how) {
  called();
  if (x.elements() == 0) return;
  const std::vector<std::int64_t> positions = positions_of(x, how);
  const LoadedRows rows(x);
  const LoadedRows angles(how.angles.view({how.angles.dim(0), 2 * how.angles.dim(1)}));
  const auto pairs = std::size_t(how.angles.dim(1));
  const std::int64_t heads = rows.count() / (x.dim(0) * x.dim(1));
  const double sign = how.turn == Turn::forward ? 1 : -1;
  const bool halves = how.pairing == Pairing::halves;
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    std::vector<double> row = rows.load(i);
    const std::vector<double> angle = angles.load(positions[std::size_t(i / heads)]);
    for (std::size_t p = 0; p < pairs; ++p) {
      double& first = row[halves ? p : 2 * p];
      double& second = row[halves ? p + pairs : 2 * p + 1];
      const double cosine = angle[2 * p];
      const double sine = sign * angle[2 * p + 1];
      const double turned = first * cosine - second * sine;
      second = first * sine + second * cosine;
      first = turned;
    }
    rows.store(i, row);
  }
}

}  // namespace weft
