// Small floating-point numbers as C++ types: bf16, f16 and two with eight bits. Storage only: arithmetic
// happens in float.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace weft {

namespace half {

/// What a small type does with the codes of its largest exponent.
enum class Top {
  ieee,    // infinity, and NaN above it
  finite,  // numbers, but for the last code, which is NaN; there is no infinity (OCP's E4M3)
};

/// The layout of a small type: sign, exponent, mantissa, from the highest bit down.
template <int exponent_bits, int mantissa_bits, Top top>
struct Layout {
  static constexpr int width = 1 + exponent_bits + mantissa_bits;
  static constexpr int drop = 23 - mantissa_bits;  // bits of a float's mantissa that do not fit
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr std::uint32_t sign = 1u << (width - 1);
  static constexpr std::uint32_t last = sign - 1;  // the largest code without a sign
  static constexpr std::uint32_t infinity = top == Top::ieee ? last >> mantissa_bits << mantissa_bits : last;
  static constexpr std::uint32_t quiet = top == Top::ieee ? infinity | 1u << (mantissa_bits - 1) : last;
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
};

/// Every step is a select, not a branch, so that a loop over it becomes vector code.
template <class L>
constexpr float widen(std::uint32_t code) {
  const std::uint32_t sign = (code & L::sign) << (32 - L::width);
  const std::uint32_t rest = code & L::last;
  const std::uint32_t normal = (rest << L::drop) + L::rebias;
  // A denormal is its mantissa times the smallest one, which every narrower exponent can write as a normal
  // float.
  const float step =
      std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - L::bias - (23 - L::drop)) << 23);
  const auto denormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(rest)) * step);
  const bool is_nan = rest > L::infinity || (L::infinity == L::last && rest == L::last);
  const std::uint32_t special = is_nan ? 0x7fc00000u | rest << L::drop : 0x7f800000u;
  const bool is_special = rest >= L::infinity;
  const bool is_denormal = rest < 1u << (23 - L::drop);
  return std::bit_cast<float>(sign | (is_special ? special : is_denormal ? denormal : normal));
}

/// To the nearest, ties to even; too large becomes infinity, or NaN where there is none.
template <class L>
constexpr std::uint32_t shorten(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 31 << (L::width - 1);
  const std::uint32_t rest = bits & 0x7fffffffu;
  const std::uint32_t even = rest >> L::drop & 1u;
  const std::uint32_t normal = (rest - L::rebias + even + (1u << (L::drop - 1)) - 1u) >> L::drop;
  // Beside a number whose last bit is the smallest denormal, the addition itself rounds as it should.
  const std::uint32_t anchor = static_cast<std::uint32_t>(127 + 1 - L::bias + L::drop) << 23;
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + std::bit_cast<float>(anchor)) - anchor;
  const bool is_denormal = rest < L::rebias + (1u << 23);
  const std::uint32_t number = is_denormal ? denormal : normal;
  const std::uint32_t payload = (rest >> L::drop & (L::last & ~L::infinity)) | L::quiet;
  const bool too_large = rest >= 0x7f800000u || number > L::infinity;
  return sign | (rest > 0x7f800000u ? payload : too_large ? L::infinity : number);
}

using F16 = Layout<5, 10, Top::ieee>;
using E4M3 = Layout<4, 3, Top::finite>;
using E5M2 = Layout<5, 2, Top::ieee>;

}  // namespace half

/// The upper half of a float: its range, 8 bits of precision.
struct bf16 {
  std::uint16_t bits;

  bf16() = default;
  constexpr explicit bf16(float x) : bits(shorten(x)) {}
  static constexpr bf16 from_bits(std::uint16_t b) { return std::bit_cast<bf16>(b); }
  constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

 private:
  static constexpr std::uint16_t shorten(float x) {
    const auto all = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (all + 0x7fffu + (all >> 16 & 1u)) >> 16;
    const std::uint32_t quieted = all >> 16 | 0x40u;
    return static_cast<std::uint16_t>((all & 0x7fffffffu) > 0x7f800000u ? quieted : rounded);
  }
};

/// IEEE binary16: 11 bits of precision, from 6e-8 to 65504.
struct f16 {
  std::uint16_t bits;

  f16() = default;
  constexpr explicit f16(float x) : bits(static_cast<std::uint16_t>(half::shorten<half::F16>(x))) {}
  static constexpr f16 from_bits(std::uint16_t b) { return std::bit_cast<f16>(b); }
  constexpr operator float() const { return half::widen<half::F16>(bits); }
};

/// OCP's E4M3 without infinities: 4 bits of precision, up to 448; what is larger becomes NaN, so scale
/// before.
struct f8e4m3 {
  std::uint8_t bits;

  f8e4m3() = default;
  constexpr explicit f8e4m3(float x) : bits(static_cast<std::uint8_t>(half::shorten<half::E4M3>(x))) {}
  static constexpr f8e4m3 from_bits(std::uint8_t b) { return std::bit_cast<f8e4m3>(b); }
  constexpr operator float() const { return half::widen<half::E4M3>(bits); }
};

/// OCP's E5M2: 3 bits of precision, f16's range (up to 57344), infinities and NaN as IEEE has them.
struct f8e5m2 {
  std::uint8_t bits;

  f8e5m2() = default;
  constexpr explicit f8e5m2(float x) : bits(static_cast<std::uint8_t>(half::shorten<half::E5M2>(x))) {}
  static constexpr f8e5m2 from_bits(std::uint8_t b) { return std::bit_cast<f8e5m2>(b); }
  constexpr operator float() const { return half::widen<half::E5M2>(bits); }
};

static_assert(sizeof(bf16) == 2 && sizeof(f16) == 2 && sizeof(f8e4m3) == 1 && sizeof(f8e5m2) == 1);
static_assert(std::is_trivial_v<bf16> && std::is_trivial_v<f16>);
static_assert(std::is_trivial_v<f8e4m3> && std::is_trivial_v<f8e5m2>);

}  // namespace weft
