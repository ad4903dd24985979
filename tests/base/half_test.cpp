// Every code of every small type, and the floats around the points where rounding turns.
#include "weft/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace weft;

namespace {

// A small type's value from its definition, in double, sharing nothing with the code under test.
struct Definition {
  int exponent_bits, mantissa_bits;
  bool infinities;

  int codes() const { return 1 << (exponent_bits + mantissa_bits); }  // without a sign
  double value(int code) const {
    const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    if (infinities && exponent == top) return mantissa == 0 ? HUGE_VAL : std::nan("");
    if (!infinities && code == codes() - 1) return std::nan("");
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
};

template <class Small>
struct Traits;
template <>
struct Traits<bf16> {
  static constexpr Definition definition{8, 7, true};
};
template <>
struct Traits<f16> {
  static constexpr Definition definition{5, 10, true};
};
template <>
struct Traits<f8e4m3> {
  static constexpr Definition definition{4, 3, false};
};
template <>
struct Traits<f8e5m2> {
  static constexpr Definition definition{5, 2, true};
};

template <class Small>
Small from_code(int code) {
  return Small::from_bits(static_cast<decltype(Small::bits)>(code));
}

template <class Small>
class Half : public testing::Test {};
using Smalls = testing::Types<bf16, f16, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(Half, Smalls);

}  // namespace

TYPED_TEST(Half, reads_every_code_as_its_definition_says) {
  const Definition& d = Traits<TypeParam>::definition;
  for (int code = 0; code < d.codes(); ++code) {
    const double expected = d.value(code);
    const float plus = from_code<TypeParam>(code), minus = from_code<TypeParam>(code | d.codes());
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(plus) && std::isnan(minus)) << code;
    } else {
      ASSERT_EQ(plus, expected) << code;
      ASSERT_EQ(minus, -expected) << code;
      ASSERT_TRUE(std::signbit(minus)) << code;
    }
  }
}

TYPED_TEST(Half, gives_every_code_back_after_a_trip_through_float) {
  const int codes = 2 * Traits<TypeParam>::definition.codes();
  for (int code = 0; code < codes; ++code) {
    const TypeParam small = from_code<TypeParam>(code);
    const float wide = small;
    if (std::isnan(wide)) {
      const TypeParam again(wide);
      ASSERT_TRUE(std::isnan(static_cast<float>(again))) << code;
      ASSERT_EQ(std::signbit(static_cast<float>(again)), std::signbit(wide)) << code;
    } else {
      ASSERT_EQ(TypeParam(wide).bits, small.bits) << code;
    }
  }
}

TYPED_TEST(Half, rounds_to_the_nearest_and_a_tie_to_the_even_code) {
  const Definition& d = Traits<TypeParam>::definition;
  int ties = 0;
  for (int code = 0; code + 1 < d.codes() && std::isfinite(d.value(code + 1)); ++code) {
    const double low = d.value(code), high = d.value(code + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(middle, (low + high) / 2);
    const int even = code % 2 == 0 ? code : code + 1;
    ASSERT_EQ(TypeParam(middle).bits, from_code<TypeParam>(even).bits) << code;
    ASSERT_EQ(TypeParam(-middle).bits, from_code<TypeParam>(even | d.codes()).bits) << code;
    ASSERT_EQ(TypeParam(std::nextafter(middle, 0.0f)).bits, from_code<TypeParam>(code).bits) << code;
    ASSERT_EQ(TypeParam(std::nextafter(middle, HUGE_VALF)).bits, from_code<TypeParam>(code + 1).bits) << code;
    ++ties;
  }
  EXPECT_GT(ties, 100 * (d.mantissa_bits - 1) / 2);
}

TYPED_TEST(Half, keeps_the_sign_of_zero_and_passes_nan_on) {
  const int codes = Traits<TypeParam>::definition.codes();
  EXPECT_EQ(TypeParam(0.0f).bits, 0);
  EXPECT_EQ(TypeParam(-0.0f).bits, from_code<TypeParam>(codes).bits);
  // NaNs whose payload lies only in the bits that are dropped stay NaN.
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    const auto nan = std::bit_cast<float>(bits);
    const float through = TypeParam(nan);
    EXPECT_TRUE(std::isnan(through)) << bits;
    EXPECT_EQ(std::signbit(through), std::signbit(nan)) << bits;
  }
}

TEST(HalfTop, overflows_half_a_step_above_the_largest_number) {
  EXPECT_EQ(static_cast<float>(f16(65519.996f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(f16(65520.0f)), HUGE_VALF);
  EXPECT_EQ(static_cast<float>(f16(-1e30f)), -HUGE_VALF);
  EXPECT_EQ(static_cast<float>(f8e5m2(61439.996f)), 57344.0f);
  EXPECT_EQ(static_cast<float>(f8e5m2(61440.0f)), HUGE_VALF);
  const float largest = std::bit_cast<float>(0x7f7f0000u);
  EXPECT_EQ(static_cast<float>(bf16(std::bit_cast<float>(0x7f7f7fffu))), largest);
  EXPECT_EQ(static_cast<float>(bf16(std::bit_cast<float>(0x7f7f8000u))), HUGE_VALF);
  EXPECT_EQ(static_cast<float>(bf16(-HUGE_VALF)), -HUGE_VALF);
}

TEST(HalfTop, has_no_infinity_in_e4m3_and_says_nan_instead) {
  EXPECT_EQ(static_cast<float>(f8e4m3(464.0f)), 448.0f);
  EXPECT_TRUE(std::isnan(static_cast<float>(f8e4m3(std::nextafter(464.0f, 500.0f)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(f8e4m3(HUGE_VALF))));
  EXPECT_EQ(f8e4m3(-HUGE_VALF).bits, 0xff);
}

TEST(HalfTop, rounds_sixteen_million_floats_as_the_c_library_rounds_their_multiples_of_a_step) {
  // Strides that are odd visit every pattern of low bits; 16 million floats of both signs.
  for (std::uint32_t bits = 0; bits < 0xffffff00u; bits += 255) {
    const auto x = std::bit_cast<float>(bits);
    if (!std::isfinite(x)) continue;
    const double scaled = std::fabs(static_cast<double>(x));
    const int exponent = scaled > 0 ? std::max(std::ilogb(scaled), -14) : -14;
    const double step = std::ldexp(1.0, exponent - 10);
    double expected = std::nearbyint(scaled / step) * step;
    if (expected > 65504) expected = HUGE_VAL;
    ASSERT_EQ(static_cast<float>(f16(x)), std::copysign(expected, x)) << bits;
  }
}

TEST(HalfTop, computes_in_float_and_is_known_at_compile_time) {
  static_assert(f16(1.0f).bits == 0x3c00 && bf16(1.0f).bits == 0x3f80);
  static_assert(f8e4m3(1.0f).bits == 0x38 && f8e5m2(1.0f).bits == 0x3c);
  static_assert(static_cast<float>(f16(0x1p-24f)) == 0x1p-24f);
  EXPECT_EQ(bf16(1.5f) + bf16(2.25f), 3.75f);
  EXPECT_TRUE(bf16(1.5f) < f16(2.0f));
}
