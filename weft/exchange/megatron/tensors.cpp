#include "weft/exchange/megatron/tensors.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange::megatron {
namespace {

bool overlap(const Chunk& a, const Chunk& b) {
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.column < b.column + b.columns &&
         b.column < a.column + a.columns;
}

bool within(const Chunk& chunk, const TheirTensor& tensor) {
  const auto fits = [](std::int64_t from, std::int64_t count, std::int64_t all) {
    return from >= 0 && count >= 0 && from <= all && count <= all - from;
  };
  return fits(chunk.row, chunk.rows, tensor.rows()) && fits(chunk.column, chunk.columns, tensor.columns());
}

/// Chunks in the order of their rows meet those alone that begin before they end.
bool any_overlap(std::vector<Chunk> chunks) {
  std::ranges::sort(chunks, {}, &Chunk::row);
  for (std::size_t i = 0; i < chunks.size(); ++i)
    for (std::size_t j = i + 1; j < chunks.size() && chunks[j].row < chunks[i].row + chunks[i].rows; ++j)
      if (overlap(chunks[i], chunks[j])) return true;
  return false;
}

}  // namespace

void Tensors::add(const std::string& name, const Shape& shape, const Chunk& chunk) {
  if (shape.elements() == 0) fail(Kind::data, who_, ": ", name, ' ', shape, " holds no number");
  const auto [at, fresh] =
      all_.try_emplace(name, TheirTensor{.shape = shape, .dtype = chunk.dtype, .chunks = {}});
  TheirTensor& tensor = at->second;
  if (tensor.shape != shape)
    fail(Kind::data, who_, ": ", name, " is ", tensor.shape, " in one place and ", shape, " in another");
  if (tensor.dtype != chunk.dtype)
    fail(Kind::data, who_, ": ", name, " is of ", weft::name(tensor.dtype), " in one place and of ",
         weft::name(chunk.dtype), " in another");
  if (!within(chunk, tensor))
    fail(Kind::data, who_, ": ", name, ": a chunk from row ", chunk.row, " and column ", chunk.column,
         " on of ", chunk.rows, " x ", chunk.columns, " leaves ", shape);
  tensor.chunks.push_back(chunk);
}

void Tensors::check_whole() const {
  for (const auto& [name, tensor] : all_) {
    std::int64_t elements = 0;
    for (const Chunk& chunk : tensor.chunks) elements += chunk.rows * chunk.columns;
    if (elements == tensor.shape.elements() && !any_overlap(tensor.chunks)) continue;
    fail(Kind::data, who_, ": the chunks of ", name, ' ', tensor.shape,
         elements < tensor.shape.elements() ? " leave holes" : " overlap");
  }
}

const TheirTensor* Tensors::find(const std::string& name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

void Tensors::rename(const std::string& from, const std::string& to) {
  auto node = all_.extract(from);
  node.key() = to;
  all_.insert(std::move(node));
}

void read(const TheirTensor& tensor, std::int64_t row, std::int64_t column, std::span<float> to) {
  const std::int64_t end = column + std::ssize(to);
  for (const Chunk& chunk : tensor.chunks) {
    const std::int64_t from = std::max(column, chunk.column),
                       until = std::min(end, chunk.column + chunk.columns);
    if (row < chunk.row || row >= chunk.row + chunk.rows || from >= until) continue;
    const std::int64_t first =
        chunk.first + (row - chunk.row) * chunk.row_step + (from - chunk.column) * chunk.column_step;
    widen(chunk.archive->storage(*chunk.stored), chunk.dtype, {first, chunk.column_step, until - from},
          to.data() + (from - column));
  }
}

bool same(const TheirTensor& a, const TheirTensor& b) {
  if (a.shape != b.shape) return false;
  std::vector<float> left(std::size_t(a.columns())), right(left.size());
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    read(a, row, 0, left);
    read(b, row, 0, right);
    if (std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

}  // namespace weft::exchange::megatron
