#include "weft/nn/parameter.h"

#include <cmath>
#include <utility>
#include <vector>

#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/random.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// A number for a name that no layout changes: FNV-1a, 64 bits.
std::uint64_t number_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

Parameter cut_parameter(std::string name, const Shape& whole, const Init& init, int dim, const Along& cut) {
  Shape local = whole;
  local[dim] = exact(whole[dim], cut.ranks);
  Shape offset = whole;
  for (int i = 0; i < offset.rank(); ++i) offset[i] = i == dim ? cut.rank * local[dim] : 0;
  Parameter out;
  out.name = std::move(name);
  out.shape = local;
  out.pieces = {{{whole, offset, local}, 0}};
  out.init = init;
  out.decays = whole.rank() > 1;
  return out;
}

Spread spread_along(Axis axis) { return spread_in(axis == Axis::tp ? View::dense : View::experts, axis); }

/// Elements behind each other in a whole tensor as a matrix: a vector is one row.
std::int64_t row_width(const Shape& shape) {
  std::int64_t width = 1;
  for (int i = shape.rank() == 1 ? 0 : 1; i < shape.rank(); ++i) width *= shape[i];
  return width;
}

/// The part of the local memory that a piece fills, as a matrix; of three dimensions only the first is cut.
Tensor block_of(const Tensor& value, const Piece& piece) {
  const Tensor flat = value.view({value.elements()});
  const Shape& box = piece.where.local;
  return flat.slice(0, piece.at, box.elements()).view({box.rank() == 1 ? 1 : box[0], row_width(box)});
}

RandomBlock random_block(const Parameter& parameter, const Piece& piece, std::uint64_t seed) {
  const Shard& at = piece.where;
  const bool vector = at.global.rank() == 1;
  return {.at = {.seed = seed, .purpose = Purpose::init, .sample = number_of(parameter.name)},
          .row = vector ? 0 : at.offset[0],
          .column = vector ? at.offset[0] : at.offset[1],
          .columns = row_width(at.global)};
}

bool made_of_uniform(Init::How how) {
  return how == Init::How::log_of_uniform || how == Init::How::softplus_gives_exp_of_uniform;
}
double made_of(Init::How how, double x) {
  if (how == Init::How::log_of_uniform) return std::log(x);
  return std::log(std::expm1(std::exp(x)));
}
/// A few numbers, once: no device needs a kernel for it.
void make(const Tensor& few, Init::How how) {
  std::vector<float> host = to_host<float>(few);
  for (float& x : host) x = float(made_of(how, double(x)));
  copy_to<float>(few, host);
}

}  // namespace

void GradSink::clear() const {
  ops::fill(sum_, 0);
  old_ = false;
}

GradPlace GradSink::place(std::int64_t first, std::int64_t count) const {
  if (holds_nothing() && count < sum_.dim(0)) clear();
  return {sum_.slice(0, first, count), !std::exchange(old_, false)};
}

GradPlace GradSink::place() const {
  make_room();
  return place(0, sum_.dim(0));
}

Parameter whole_parameter(std::string name, const Shape& shape, const Init& init) {
  return cut_parameter(std::move(name), shape, init, 0, {});
}

Parameter row_parameter(std::string name, const Shape& whole, const Init& init, const Along& cut) {
  Parameter out = cut_parameter(std::move(name), whole, init, 0, cut);
  out.spread = spread_along(cut.axis);
  return out;
}

Parameter column_parameter(std::string name, const Shape& whole, const Init& init, const Along& cut) {
  Parameter out = cut_parameter(std::move(name), whole, init, 1, cut);
  out.spread = spread_along(cut.axis);
  return out;
}

void initialize(const Parameter& parameter, const Tensor& value, std::uint64_t seed) {
  const Init& init = parameter.init;
  if (init.how == Init::How::constant) return ops::fill(value, init.value);
  ops::fill(value, 0);  // what belongs to no piece: rows that only fill up storage
  for (const Piece& piece : parameter.pieces) {
    const Tensor block = block_of(value, piece);
    const RandomBlock place = random_block(parameter, piece, seed);
    if (init.how == Init::How::normal)
      ops::random_normal_into(block, init.value, init.spread, place);
    else
      ops::random_uniform_into(block, init.value - init.spread, init.value + init.spread, place);
    if (made_of_uniform(init.how)) make(block, init.how);
  }
}

}  // namespace weft
