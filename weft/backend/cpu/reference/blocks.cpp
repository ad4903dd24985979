// Numbers as small integers with a scale a block, in plain loops.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

float scale_of(std::span<const double> block, const BlockCode& how) {
  double greatest = 0;
  for (const double x : block) {
    if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
    greatest = std::max(greatest, std::abs(x));
  }
  const auto scale = float(greatest / how.most());
  return scale < std::numeric_limits<float>::min() ? 0 : scale;
}

/// x / scale, by the reciprocal that every device computes first.
int code_of(double x, float scale) {
  if (!(scale > 0)) return 0;
  return int(std::nearbyint(float(x * double(1 / scale))));
}

void pack(std::vector<double>& bytes, std::span<const double> block, const BlockCode& how) {
  const float scale = scale_of(block, how);
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  for (int i = 0; i < 4; ++i) bytes.push_back(double(bits >> (8 * i) & 255U));
  const unsigned mask = (1U << how.bits) - 1;
  const std::size_t a_byte = how.bits == 8 ? 1 : 2;
  for (std::size_t i = 0; i < block.size(); i += a_byte) {
    unsigned byte = 0;
    for (std::size_t k = 0; k < a_byte && i + k < block.size(); ++k)
      byte |= (unsigned(code_of(block[i + k], scale)) & mask) << (4 * k);
    bytes.push_back(double(byte));
  }
}

double code_at(std::span<const double> codes, std::size_t i, int bits) {
  const int byte = int(bits == 8 ? codes[i] : codes[i / 2]);
  const int code = bits == 8 ? byte : byte >> (4 * (i % 2)) & 15;
  return code < 1 << (bits - 1) ? code : code - (1 << bits);
}

}  // namespace

void ReferenceKernels::pack_blocks(const Tensor& packed, const Tensor& x, const BlockCode& how) {
  called();
  const std::vector<double> values = reference::load(x);
  std::vector<double> bytes;
  const auto block = std::size_t(how.block);
  for (std::size_t at = 0; at < values.size(); at += block)
    pack(bytes, std::span(values).subspan(at, std::min(block, values.size() - at)), how);
  reference::store(packed, bytes);
}

void ReferenceKernels::unpack_blocks(const Tensor& out, const Tensor& packed, const BlockCode& how) {
  called();
  std::vector<double> values = reference::load(out);
  const std::vector<double> bytes = reference::load(packed);
  std::span<const double> rest(bytes);
  for (std::size_t at = 0; at < values.size(); at += std::size_t(how.block)) {
    const std::size_t count = std::min(std::size_t(how.block), values.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) bits |= std::uint32_t(rest[i]) << (8 * i);
    const float scale = std::bit_cast<float>(bits);
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = float(code_at(rest.subspan(4), i, how.bits) * double(scale));
      values[at + i] = how.accumulate ? double(float(values[at + i]) + x) : double(x);
    }
    rest = rest.subspan(std::size_t(packed_bytes(std::int64_t(count), how)));
  }
  reference::store(out, values);
}

}  // namespace weft
