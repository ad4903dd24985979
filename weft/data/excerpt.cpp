// Tokens and labels are a row apart in text, so a window of both begins at one place.
#include "weft/data/excerpt.h"

#include <algorithm>

namespace weft::data {
namespace {

constexpr int sample_bits = 50;  // a run has at most a quadrillion samples

/// Where a row of the part begins: in which row of the whole, and with which piece of it.
struct Window {
  std::int64_t row = 0, piece = 0, from = 0;
};

std::int64_t whole_pieces(std::int64_t length, std::int64_t of) { return (length + 1) / (of + 1); }

Window window_of(std::int64_t i, const Rows& whole, const Excerpt& excerpt) {
  if (excerpt.form == ExcerptForm::truncate) return {i, 0, 0};
  const std::int64_t each = whole_pieces(whole.length, excerpt.length);
  if (i < whole.count * each) return {i / each, i % each, i % each * (excerpt.length + 1)};
  return {i - whole.count * each, each, whole.length - excerpt.length};
}

/// A document that began before the piece begins with it.
void begin_anew(std::vector<std::int32_t>& positions, std::int64_t length) {
  for (std::size_t i = 0; i < positions.size(); ++i)
    positions[i] = std::min(positions[i], std::int32_t(std::int64_t(i) % length));
}

}  // namespace

Rows rows_of(const Rows& whole, const Excerpt& excerpt) {
  if (excerpt.length == 0 || excerpt.length >= whole.length) return whole;
  if (excerpt.form == ExcerptForm::truncate) return {whole.count, excerpt.length};
  const std::int64_t width = excerpt.length + 1, tokens = whole.count * (whole.length + 1);
  const std::int64_t all = whole.count * (whole_pieces(whole.length, excerpt.length) + 1);
  const std::int64_t kept = std::min((tokens + width - 1) / width, all);
  return {kept > 1 ? kept - kept % 2 : kept, excerpt.length};
}

void cut(const HostBatch& whole, const Excerpt& excerpt, HostBatch& part) {
  const std::int64_t length = std::ssize(whole[Field::tokens]) / whole.size();
  const Rows from{whole.size(), length}, to = rows_of(from, excerpt);
  part.samples.clear();
  for (auto& rows : part.rows) rows.clear();
  for (std::int64_t i = 0; i < to.count; ++i) {
    const Window at = window_of(i, from, excerpt);
    part.samples.push_back(number_of_piece(whole.samples[std::size_t(at.row)], at.piece));
    for (std::size_t f = 0; f < num_fields; ++f) {
      const auto& rows = whole.rows[f];
      const std::int64_t width = std::ssize(rows) / from.count;
      const auto begin = rows.begin() + at.row * width + (width == length ? at.from : 0);
      part.rows[f].insert(part.rows[f].end(), begin, begin + (width == length ? to.length : width));
    }
  }
  if (excerpt.form == ExcerptForm::reshape) begin_anew(part[Field::positions], to.length);
}

void take_row(const HostBatch& whole, std::int64_t row, HostBatch& into) {
  into.samples.assign(1, whole.samples[std::size_t(row)]);
  for (std::size_t f = 0; f < num_fields; ++f) {
    const auto& rows = whole.rows[f];
    const std::int64_t width = std::ssize(rows) / whole.size();
    into.rows[f].assign(rows.begin() + row * width, rows.begin() + (row + 1) * width);
  }
}

std::int64_t number_of_piece(std::int64_t sample, std::int64_t piece) {
  return sample + (piece << sample_bits);
}
std::int64_t sample_of(std::int64_t number) { return number & ((std::int64_t{1} << sample_bits) - 1); }

}  // namespace weft::data
