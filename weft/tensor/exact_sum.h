// Sums of f32 numbers, or of their squares, that are exact and therefore do not depend on any order.
//
// A sum is held as digits: value = sum over i of digit[i] * 2^(32 i - 320). Every f32, and every square of
// one, is a whole multiple of 2^-320, so nothing is ever rounded. Digits are doubles that hold integers, so
// that a plain f64 all-reduce adds two sums: carried digits leave room for 2^20 of them. An infinity or a NaN
// lives in the last digit.
#pragma once

#include <cstdint>
#include <span>

namespace weft {

inline constexpr int exact_digits = 18;
inline constexpr int exact_digit_bits = 32;
inline constexpr int exact_lowest_exponent = -320;

/// Brings all digits but the last into [0, 2^32): the one way to write a sum. The last one has the sign.
void carry(std::span<double, exact_digits> digits);
/// Adds integer * 2^exponent; call carry() at least every 2^20 times. The product must be a multiple of
/// 2^-320.
void add_exact(std::span<double, exact_digits> digits, std::int64_t integer, int exponent);
/// The nearest double or its neighbour, always the same one for the same sum.
double exact_value(std::span<const double, exact_digits> digits);

}  // namespace weft
