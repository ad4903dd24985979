// Rows are found by the recipe's runs; numbers become float on the way.
#include "weft/exchange/their_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/checkpoint/agree.h"

namespace weft::exchange {
namespace {

constexpr std::int64_t chunk_elements = std::int64_t{1} << 20;

std::vector<std::byte> narrowed(std::span<const float> values, Dtype dtype) {
  std::vector<std::byte> out(values.size() * std::size_t(size_of(dtype)));
  visit_float(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value(values[i]);
      std::memcpy(out.data() + i * sizeof(T), &value, sizeof value);
    }
  });
  return out;
}

// As a matrix: rows lie along all dimensions but the last. Nobody cuts those of a filter but along the first.
std::array<std::array<std::int64_t, 2>, 2> rows_of(const Shard& box) {
  const Shape &global = box.global, &local = box.local, &offset = box.offset;
  const int last = global.rank() - 1;
  if (last == 0) return {{{local[0], 1}, {offset[0], 0}}};
  std::int64_t below = 1;
  for (int i = 1; i < last; ++i) {
    if (local[i] != global[i]) fail(Kind::internal, "exchange: a box of ", local, " of ", global);
    below *= global[i];
  }
  return {{{local[0] * below, local[last]}, {offset[0] * below, offset[last]}}};
}

// A box is whole rows, or parts of rows that are read one by one.
void fill(const TheirWeights& weights, const Recipe& recipe, const checkpoint::Named& named,
          const Piece& piece) {
  const auto [local, offset] = rows_of(piece.where);
  const std::int64_t rows = local[0], row0 = offset[0], width = local[1], column0 = offset[1];
  const Tensor& tensor = named.tensor;
  const std::int64_t at_once =
      width == recipe.columns() ? std::max<std::int64_t>(1, chunk_elements / std::max<std::int64_t>(width, 1))
                                : 1;
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; row += at_once) {
    const std::int64_t now = std::min(at_once, rows - row);
    values.resize(std::size_t(now * width));
    weights.read(recipe, (row0 + row) * recipe.columns() + column0, values);
    const auto bytes = narrowed(values, tensor.dtype());
    tensor.device()
        .copy_from_host(*tensor.storage(),
                        (tensor.offset() + piece.at + row * width) * size_of(tensor.dtype()), bytes.data(),
                        std::ssize(bytes))
        .wait();
  }
}

}  // namespace

void widen(std::span<const std::byte> bytes, Dtype dtype, const Walk& walk, float* to) {
  visit_float(dtype, [&]<class T>() {
    const std::byte* from = bytes.data() + walk.first * std::int64_t(sizeof(T));
    for (std::int64_t i = 0; i < walk.count; ++i) {
      T value;  // a file's bytes need not be aligned
      std::memcpy(&value, from + i * walk.step * std::int64_t(sizeof(T)), sizeof value);
      to[i] = static_cast<float>(value);
    }
  });
}

TheirWeights::TheirWeights(std::string who, std::vector<Recipe> recipes)
    : who_(std::move(who)), recipes_(std::move(recipes)) {
  for (std::size_t i = 0; i < recipes_.size(); ++i) places_[recipes_[i].name] = i;
}

const Recipe& TheirWeights::at(const std::string& ours) const {
  const auto found = places_.find(ours);
  if (found == places_.end()) fail(Kind::usage, who_, ": its model has no ", ours);
  return recipes_[found->second];
}

Dtype TheirWeights::dtype(const Recipe& recipe) const {
  Dtype widest = dtype_of_part(recipe.parts.front());
  for (const Theirs& theirs : recipe.parts)
    if (dtype_of_part(theirs) != widest) widest = Dtype::f32;
  return widest;
}

void TheirWeights::read(const Recipe& recipe, std::int64_t first, std::span<float> to) const {
  const std::int64_t columns = recipe.columns();
  std::int64_t row = first / columns, column = first % columns;
  auto run = std::ranges::upper_bound(recipe.runs, row, {}, &RowRun::to) - 1;
  for (std::size_t done = 0; done < to.size();) {
    if (row >= run->to + run->count) ++run;
    const std::int64_t count = std::min(columns - column, std::int64_t(to.size() - done));
    read_row(recipe.parts[run->part], run->from + (row - run->to) * run->step, column,
             to.subspan(done, std::size_t(count)));
    done += std::size_t(count);
    column = 0;
    ++row;
  }
  if (recipe.plus != 0)
    for (float& value : to) value = float(double(value) - recipe.plus);
}

void load_theirs(const TheirWeights& weights, std::span<const checkpoint::Named> mine, Communicator& world) {
  checkpoint::agree(world, [&]() -> std::string {
    for (const checkpoint::Named& named : mine) {
      check(named);
      if (named.pieces.empty()) continue;
      const Recipe& recipe = weights.at(named.name);
      if (recipe.shape != named.pieces.front().where.global)
        fail(Kind::usage, "exchange: ", named.name, " is ", recipe.shape, ", and ",
             named.pieces.front().where.global, " is wanted");
      for (const Piece& piece : named.pieces)
        if (piece.where.local.elements() > 0) fill(weights, recipe, named, piece);
    }
    return {};
  });
}

}  // namespace weft::exchange
