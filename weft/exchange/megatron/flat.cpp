#include "weft/exchange/megatron/flat.h"

#include <algorithm>

#include "weft/base/number.h"

namespace weft::exchange::megatron {
namespace {

constexpr std::int64_t unit = 64;

std::int64_t begin_behind(std::int64_t end) { return (end + unit - 1) / unit * unit; }

/// Each bucket is full when the next one begins; before a parameter that stands alone also with the gap in
/// front of where that would have begun.
std::optional<std::vector<Slot>> slots_in_buckets(const std::vector<Bucket>& buckets,
                                                  std::span<const Lying> parameters) {
  std::vector<Slot> out;
  std::size_t bucket = 0;
  std::int64_t end = 0;
  for (const Lying& one : parameters) {
    if (bucket >= buckets.size()) return std::nullopt;
    std::int64_t first = begin_behind(end);
    if (end > 0 && first >= buckets[bucket].elements) {
      if (end != buckets[bucket].elements && first != buckets[bucket].elements) return std::nullopt;
      if (++bucket == buckets.size()) return std::nullopt;
      first = 0;
    }
    if (one.elements > buckets[bucket].elements - first) return std::nullopt;
    out.push_back({bucket, first});
    end = first + one.elements;
  }
  const bool full = bucket + 1 == buckets.size() && end == buckets[bucket].elements;
  return full ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::vector<Slot>> slots_in_one(std::int64_t elements, std::span<const Lying> parameters,
                                              std::int64_t bucket_size) {
  std::vector<Slot> out;
  std::int64_t base = 0, end = 0;
  const auto close = [&](std::int64_t at) {
    base += at;
    end = 0;
  };
  for (const Lying& one : parameters) {
    if (one.alone && end > 0) close(begin_behind(end));
    const std::int64_t first = begin_behind(end);
    if (one.elements > elements - base - first) return std::nullopt;
    out.push_back({0, base + first});
    end = first + one.elements;
    if (one.alone || (bucket_size > 0 && end >= bucket_size)) close(end);
  }
  return base + end == elements ? std::optional(std::move(out)) : std::nullopt;
}

/// Rows and columns of a matrix, and the place of its first number among those that lie in a row.
struct Rectangle {
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;
};

/// What lies from `first` to `end` in a matrix of such a width: some of a row, whole rows, some of a row.
std::vector<Rectangle> rectangles(std::int64_t first, std::int64_t end, std::int64_t width) {
  std::vector<Rectangle> out;
  while (first < end) {
    const std::int64_t row = first / width, column = first % width;
    const std::int64_t rows = column == 0 && end - first >= width ? (end - first) / width : 1;
    const std::int64_t columns = rows > 1 ? width : std::min(width - column, end - first);
    out.push_back({row, rows, column, columns});
    first += rows > 1 ? rows * width : columns;
  }
  return out;
}

std::pair<std::int64_t, std::int64_t> overlap(std::int64_t a, std::int64_t a_count, std::int64_t b,
                                              std::int64_t b_count) {
  const std::int64_t from = std::max(a, b), until = std::min(a + a_count, b + b_count);
  return {from, std::max<std::int64_t>(0, until - from)};
}

}  // namespace

std::int64_t FlatBuffer::elements() const {
  std::int64_t out = 0;
  for (const Bucket& bucket : buckets) out += bucket.elements;
  return out;
}

std::optional<std::vector<Slot>> slots_in(const FlatBuffer& buffer, std::span<const Lying> parameters,
                                          std::int64_t bucket_size) {
  if (parameters.empty() || buffer.buckets.empty()) return std::nullopt;
  return buffer.joined ? slots_in_one(buffer.elements(), parameters, bucket_size)
                       : slots_in_buckets(buffer.buckets, parameters);
}

void add_flat(Tensors& into, const FlatParameter& parameter, std::span<const Piece> pieces,
              std::int64_t first) {
  const auto& [name, whole, portion, on_its_side] = parameter;
  const std::int64_t width = on_its_side ? portion.rows : portion.columns, end = first + portion.elements();
  auto piece = std::ranges::upper_bound(pieces, first, {}, &Piece::first) - 1;
  for (; piece != pieces.end() && piece->first < end; ++piece) {
    const std::int64_t from = std::max(first, piece->first), until = std::min(end, piece->end());
    for (const Rectangle& r : rectangles(from - first, until - first, width))
      for (const Block& block : portion.blocks) {
        const auto [row, rows] = on_its_side ? overlap(r.column, r.columns, block.first, block.rows)
                                             : overlap(r.row, r.rows, block.first, block.rows);
        if (rows == 0) continue;
        const std::int64_t column = on_its_side ? r.row : r.column;
        const std::int64_t at = on_its_side ? column * width + row : row * width + column;
        into.add(name, whole->shape,
                 Chunk{.row = block.row + row - block.first,
                       .column = block.column + column,
                       .rows = rows,
                       .columns = on_its_side ? r.rows : r.columns,
                       .archive = piece->archive,
                       .stored = piece->stored,
                       .dtype = piece->stored->dtype,
                       .first = piece->stored->offset + first + at - piece->first,
                       .row_step = on_its_side ? 1 : width,
                       .column_step = on_its_side ? width : 1});
      }
  }
}

}  // namespace weft::exchange::megatron
