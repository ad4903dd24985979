#include "weft/exchange/gguf/packed.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "weft/base/half.h"

namespace weft::exchange::gguf {
namespace {

/// What a part of a block has in common: a number is its code times the scale, plus the offset.
struct Line {
  float scale, offset = 0;
};

/// A block, and how its fields are read.
struct Block {
  const std::byte* stored;

  int byte(int at) const { return std::to_integer<int>(stored[at]); }
  int signed_byte(int at) const { return static_cast<std::int8_t>(stored[at]); }
  float half(int at) const {
    f16 found;
    std::memcpy(&found, stored + at, sizeof found);
    return static_cast<float>(found);
  }
  int bit(int at, int which) const { return byte(at) >> which & 1; }
  int pair(int at, int which) const { return byte(at) >> 2 * which & 3; }
  int four(int at, int which) const { return byte(at) >> 4 * which & 15; }
};

// Blocks of 32, whose halves lie above each other.
struct Simple : Block {
  static constexpr int numbers = 32, part = 32;
  int four_of(int codes, int i) const { return four(codes + i % 16, i / 16); }
  int fifth_of(int bits, int i) const { return bit(bits + i / 8, i % 8) << 4; }
};

struct Q40 : Simple {
  static constexpr int bytes = 18;
  Line line(int) const { return {half(0)}; }
  int code(int i) const { return four_of(2, i) - 8; }
};

struct Q41 : Simple {
  static constexpr int bytes = 20;
  Line line(int) const { return {half(0), half(2)}; }
  int code(int i) const { return four_of(4, i); }
};

struct Q50 : Simple {
  static constexpr int bytes = 22;
  Line line(int) const { return {half(0)}; }
  int code(int i) const { return (four_of(6, i) | fifth_of(2, i)) - 16; }
};

struct Q51 : Simple {
  static constexpr int bytes = 24;
  Line line(int) const { return {half(0), half(2)}; }
  int code(int i) const { return four_of(8, i) | fifth_of(4, i); }
};

struct Q80 : Simple {
  static constexpr int bytes = 34;
  Line line(int) const { return {half(0)}; }
  int code(int i) const { return signed_byte(2 + i); }
};

// Blocks of 256. Where codes have two bits, four numbers that lie 32 apart share a byte; where they have
// four, two that lie 32 apart, or 64.
struct Super : Block {
  static constexpr int numbers = 256;
  int pair_of(int codes, int i) const { return pair(codes + i / 128 * 32 + i % 32, i % 128 / 32); }
  int four_of(int codes, int i) const { return four(codes + i / 64 * 32 + i % 32, i % 64 / 32); }
};

struct Q2K : Super {
  static constexpr int part = 16, bytes = 84;
  Line line(int p) const { return {half(80) * float(four(p, 0)), -(half(82) * float(four(p, 1)))}; }
  int code(int i) const { return pair_of(16, i); }
};

struct Q3K : Super {
  static constexpr int part = 16, bytes = 110;
  Line line(int p) const {
    const int six = four(96 + p % 8, p / 8) | pair(104 + p % 4, p / 4) << 4;
    return {half(108) * float(six - 32)};
  }
  int code(int i) const { return pair_of(32, i) - (bit(i % 32, i / 32) != 0 ? 0 : 4); }
};

/// Scales and offsets of six bits for eight parts, in twelve bytes behind the block's own two.
struct Sixes : Super {
  static constexpr int part = 32;
  Line line(int p) const {
    int scale = byte(4 + p) & 63, offset = byte(8 + p) & 63;
    if (p >= 4) {  // the upper bits of those before have room for two more
      scale = four(8 + p, 0) | byte(p) >> 6 << 4;
      offset = four(8 + p, 1) | byte(4 + p) >> 6 << 4;
    }
    return {half(0) * float(scale), -(half(2) * float(offset))};
  }
};

struct Q4K : Sixes {
  static constexpr int bytes = 144;
  int code(int i) const { return four_of(16, i); }
};

struct Q5K : Sixes {
  static constexpr int bytes = 176;
  int code(int i) const { return four_of(48, i) | bit(16 + i % 32, i / 32) << 4; }
};

struct Q6K : Super {
  static constexpr int part = 16, bytes = 210;
  Line line(int p) const { return {half(208) * float(signed_byte(192 + p))}; }
  int code(int i) const { return (four(i / 128 * 64 + i % 64, i % 128 / 64) | pair_of(128, i) << 4) - 32; }
};

/// Sixteen steps that are narrower near zero.
constexpr std::array<std::int8_t, 16> uneven{-127, -104, -83, -65, -49, -35, -22, -10,
                                             1,    13,   25,  38,  53,  69,  89,  113};

struct Iq4Nl : Simple {
  static constexpr int bytes = 18;
  Line line(int) const { return {half(0)}; }
  int code(int i) const { return uneven[std::size_t(four_of(2, i))]; }
};

struct Iq4Xs : Super {
  static constexpr int part = 32, bytes = 136;
  Line line(int p) const {
    const int six = four(4 + p / 2, p % 2) | pair(2 + p / 4, p % 4) << 4;
    return {half(0) * float(six - 32)};
  }
  int code(int i) const { return uneven[std::size_t(four(8 + i / 32 * 16 + i % 16, i % 32 / 16))]; }
};

template <class Form>
void decode_block(const std::byte* stored, float* to) {
  static_assert(Form::numbers <= most_in_a_block);
  const Form form{stored};
  for (int p = 0; p < Form::numbers / Form::part; ++p) {
    const Line line = form.line(p);
    for (int i = p * Form::part; i < (p + 1) * Form::part; ++i)
      to[i] = line.scale * float(form.code(i)) + line.offset;
  }
}

template <class Form>
constexpr Packing packing(NumberType type) {
  return {type, Form::numbers, Form::bytes, decode_block<Form>};
}

constexpr std::array known{
    packing<Q40>(NumberType::q4_0), packing<Q41>(NumberType::q4_1),     packing<Q50>(NumberType::q5_0),
    packing<Q51>(NumberType::q5_1), packing<Q80>(NumberType::q8_0),     packing<Q2K>(NumberType::q2_k),
    packing<Q3K>(NumberType::q3_k), packing<Q4K>(NumberType::q4_k),     packing<Q5K>(NumberType::q5_k),
    packing<Q6K>(NumberType::q6_k), packing<Iq4Nl>(NumberType::iq4_nl), packing<Iq4Xs>(NumberType::iq4_xs),
};

}  // namespace

std::span<const Packing> packings() { return known; }

const Packing* packing_of(NumberType type) {
  const auto found = std::ranges::find(known, type, &Packing::type);
  return found == known.end() ? nullptr : &*found;
}

}  // namespace weft::exchange::gguf
