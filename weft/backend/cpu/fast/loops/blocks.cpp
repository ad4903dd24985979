// Blocks of numbers as small integers with a scale.
#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {
namespace {

constexpr std::int64_t numbers_of(Whole) { return lanes; }
constexpr std::int64_t numbers_of(Tail tail) { return tail.count; }

/// Bits of the greatest magnitude. Those of what is not finite are greater than all others.
std::int32_t greatest_bits(In x, std::int64_t n) {
  I most = all(std::int32_t{0});
  each(n, [&](auto at) {
    const I bits = as_ints(absolute(load(x, at)));
    most = choose(most < bits, bits, most);
  });
  std::int32_t few[lanes];
  for (int i = 0; i < parts; ++i) write(few + i * width, most.part[i]);
  std::int32_t greatest = 0;
  for (const std::int32_t bits : few) greatest = greatest < bits ? bits : greatest;
  return greatest;
}

float scale_of(std::int32_t greatest_bits, int bits) {
  if (greatest_bits >= 0x7f800000) return __builtin_nanf("");
  float greatest;
  __builtin_memcpy(&greatest, &greatest_bits, sizeof greatest);
  const float scale = greatest / float((1 << (bits - 1)) - 1);
  return scale < 0x1p-126F ? 0 : scale;
}

void write_codes(std::uint8_t* to, int bits, const std::int32_t (&codes)[lanes], std::int64_t count) {
  if (bits == 8) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(codes[i]);
  } else {
    for (std::int64_t i = 0; i < count; i += 2)
      to[i / 2] = static_cast<std::uint8_t>((codes[i] & 15) | (codes[i + 1] & 15) << 4);
  }
}

void pack(std::uint8_t* packed, In x, int bits, std::int64_t n) {
  const float scale = scale_of(greatest_bits(x, n), bits);
  __builtin_memcpy(packed, &scale, sizeof scale);
  if (!(scale > 0)) {
    for (std::int64_t i = 0; i < (n * bits + 7) / 8; ++i) packed[4 + i] = 0;
    return;
  }
  // The sum has no room for fractions: its last bits are the code, rounded as sums are.
  const F inverse = all(1 / scale);
  const F no_fractions = all(0x1.8p23F);
  each(n, [&](auto at) {
    const I code = as_ints(load(x, at) * inverse + no_fractions) - as_ints(no_fractions);
    std::int32_t few[lanes];
    for (int i = 0; i < parts; ++i) write(few + i * width, code.part[i]);
    write_codes(packed + 4 + at.at * bits / 8, bits, few, numbers_of(at));
  });
}

/// Of two's complement in `bits` bits.
std::int32_t signed_of(std::int32_t code, int bits) {
  const std::int32_t top = 1 << (bits - 1);
  return (code ^ top) - top;
}

void read_codes(std::int32_t (&codes)[lanes], const std::uint8_t* from, int bits, std::int64_t count) {
  if (bits == 8) {
    for (std::int64_t i = 0; i < count; ++i) codes[i] = signed_of(from[i], 8);
  } else {
    for (std::int64_t i = 0; i < count; i += 2) {
      codes[i] = signed_of(from[i / 2] & 15, 4);
      codes[i + 1] = signed_of(from[i / 2] >> 4, 4);
    }
  }
}

template <class Join>
[[gnu::always_inline]] inline void each_unpacked(const std::uint8_t* packed, int bits, std::int64_t n,
                                                 const Join& join) {
  float scale;
  __builtin_memcpy(&scale, packed, sizeof scale);
  each(n, [&](auto at) {
    std::int32_t few[lanes] = {};
    read_codes(few, packed + 4 + at.at * bits / 8, bits, numbers_of(at));
    I codes;
    for (int i = 0; i < parts; ++i) codes.part[i] = read<Ints>(few + i * width);
    join(at, to_floats(codes) * all(scale));
  });
}

void unpack(Out out, const std::uint8_t* packed, int bits, std::int64_t n) {
  each_unpacked(packed, bits, n, [&](auto at, F x) { store(out, at, x); });
}

void add_unpacked(Out out, const std::uint8_t* packed, int bits, std::int64_t n) {
  each_unpacked(packed, bits, n, [&](auto at, F x) { store(out, at, load(out, at) + x); });
}

}  // namespace

extern const BlockLoops blocks;
const BlockLoops blocks = {.pack = pack, .unpack = unpack, .add_unpacked = add_unpacked};

}  // namespace weft::fast::WEFT_ISA
