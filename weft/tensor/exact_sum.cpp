// Schoolbook arithmetic on 32-bit digits.
#include "weft/tensor/exact_sum.h"

#include <array>
#include <cmath>

namespace weft {
namespace {
constexpr double base = 0x1p32;
}  // namespace

void carry(std::span<double, exact_digits> digits) {
  double up = 0;
  for (std::size_t i = 0; i + 1 < exact_digits; ++i) {
    const double digit = digits[i] + up;
    up = std::floor(digit / base);
    digits[i] = digit - up * base;
  }
  digits[exact_digits - 1] += up;
}

void add_exact(std::span<double, exact_digits> digits, std::int64_t integer, int exponent) {
  // Below the lowest digit the product can only hold zeros.
  const int shift = exponent - exact_lowest_exponent;
  if (shift < 0) integer >>= -shift;
  const double sign = integer < 0 ? -1 : 1;
  __extension__ using Wide = unsigned __int128;
  Wide rest = Wide(integer < 0 ? -std::uint64_t(integer) : std::uint64_t(integer));
  if (shift > 0) rest <<= shift % exact_digit_bits;
  for (std::size_t i = std::size_t(shift > 0 ? shift / exact_digit_bits : 0); rest != 0; ++i) {
    const bool last = i + 1 == exact_digits;
    digits[i] += sign * double(last ? rest : rest & 0xFFFFFFFFU);
    rest = last ? 0 : rest >> exact_digit_bits;
  }
}

double exact_value(std::span<const double, exact_digits> digits) {
  std::array<double, exact_digits> carried;
  for (std::size_t i = 0; i < exact_digits; ++i) carried[i] = digits[i];
  if (!std::isfinite(carried[exact_digits - 1])) return carried[exact_digits - 1];
  carry(carried);
  double value = 0;
  for (int i = exact_digits - 1; i >= 0; --i)
    value += std::ldexp(carried[std::size_t(i)], exact_digit_bits * i + exact_lowest_exponent);
  return value;
}

}  // namespace weft
