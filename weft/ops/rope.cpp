// The table of angles is computed on the host in double and rounded once.
#include "weft/ops/rope.h"

#include <cmath>
#include <numbers>

#include "weft/ops/count.h"
#include "weft/ops/door.h"
#include "weft/tensor/host.h"

namespace weft::ops {
namespace {

double stretched(double frequency, const RopeStretch& how) {
  if (how.factor == 1) return frequency;
  const double turns = how.original * frequency / (2 * std::numbers::pi);  // over the context trained on
  if (turns < how.low) return frequency / how.factor;
  if (turns > how.high) return frequency;
  const double smooth = (turns - how.low) / (how.high - how.low);
  return (1 - smooth) * frequency / how.factor + smooth * frequency;
}

}  // namespace

std::vector<double> rope_frequencies(const RopeTable& table) {
  if (table.rotated < 0 || table.rotated % 2 != 0)
    fail(Kind::usage, "rope: ", table.rotated, " rotated channels are not pairs");
  if (!(table.base > 0)) fail(Kind::usage, "rope: a base of ", table.base, " is not positive");
  std::vector<double> out;
  for (std::int64_t i = 0; i < table.rotated; i += 2)
    out.push_back(stretched(std::pow(table.base, -double(i) / double(table.rotated)), table.stretch));
  return out;
}

Tensor rope_angles(Device& device, const RopeTable& table, Use use) {
  const std::vector<double> frequencies = rope_frequencies(table);
  if (!(table.interpolation > 0))
    fail(Kind::usage, "rope: positions cannot be divided by ", table.interpolation);
  const Shape shape{table.positions, std::int64_t(frequencies.size()), 2};
  if (!device.holds_numbers()) return empty(device, shape, Dtype::f32, use);
  std::vector<float> angles;
  angles.reserve(std::size_t(shape.elements()));
  for (std::int64_t at = 0; at < table.positions; ++at)
    for (const double frequency : frequencies) {
      const double angle = double(at) / table.interpolation * frequency;
      angles.push_back(float(std::cos(angle)));
      angles.push_back(float(std::sin(angle)));
    }
  return from_host<float>(device, shape, angles, use);
}

void rope_in_place(const Tensor& x, const RopeArgs& how) {
  const Door door("rope", x);
  door.floats("x", x).ranked("x", x, 3, Dims::max_rank).dense_rows("x", x);
  door.typed("angles", how.angles, Dtype::f32)
      .ranked("angles", how.angles, 3, 3)
      .contiguous("angles", how.angles);
  if (how.angles.dim(2) != 2 || 2 * how.angles.dim(1) > x.dim(-1))
    door.refuse(Kind::shape, "angles ", how.angles.shape(), " do not fit the ", x.dim(-1), " channels of x");
  if (how.positions) {
    door.typed("positions", how.positions, Dtype::i32).ranked("positions", how.positions, 1, 2);
    door.shaped("positions", how.positions,
                how.positions.rank() == 1 ? Shape{x.dim(0)} : Shape{x.dim(1), x.dim(0)});
  } else if (x.dim(0) > how.angles.dim(0)) {
    door.refuse(Kind::shape, x.dim(0), " steps, but angles for ", how.angles.dim(0), " positions");
  }
  const std::int64_t turned = x.dim(-1) == 0 ? 0 : x.bytes() / x.dim(-1) * 2 * how.angles.dim(1);
  count::pass(x, Work::elementwise, count::rope, 2 * turned + count::traffic(how.positions));
  x.device().kernels().rope(x, how);
}

}  // namespace weft::ops
