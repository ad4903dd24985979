// Rows first: what begins or ends within a row is cut again, a dimension further in.
#include "weft/optim/fragments.h"

#include <algorithm>

namespace weft {
namespace {

std::int64_t elements_behind(const Shape& shape, int dim) {
  std::int64_t n = 1;
  for (int i = dim + 1; i < shape.rank(); ++i) n *= shape[i];
  return n;
}

/// A run within one piece: `count` elements from element `from` of the box that dimensions before `dim` have
/// been narrowed to.
struct Run {
  Piece within;
  int dim = 0;
  std::int64_t from = 0, count = 0;
};

void cut(const Run& run, std::vector<Piece>& out) {
  const std::int64_t inner = elements_behind(run.within.where.local, run.dim);
  for (std::int64_t from = run.from, end = run.from + run.count; from < end;) {
    const std::int64_t row = from / inner, within_row = from % inner;
    Piece part = run.within;
    part.where.offset[run.dim] += row;
    if (within_row == 0 && end - from >= inner) {
      part.where.local[run.dim] = (end - from) / inner;
      part.at += from;
      from += part.where.local.elements();
      out.push_back(part);
      continue;
    }
    const std::int64_t count = std::min(inner - within_row, end - from);
    part.where.local[run.dim] = 1;
    part.at += row * inner;
    cut({part, run.dim + 1, within_row, count}, out);
    from += count;
  }
}

}  // namespace

std::vector<Piece> fragments(std::span<const Piece> pieces, std::int64_t from, std::int64_t count) {
  std::vector<Piece> out;
  for (const Piece& piece : pieces) {
    const std::int64_t first = std::max(from, piece.at);
    const std::int64_t last = std::min(from + count, piece.at + piece.where.local.elements());
    if (first < last) cut({piece, 0, first - piece.at, last - first}, out);
  }
  return out;
}

}  // namespace weft
