// The types a tensor may hold, and the one link between them and C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/half.h"

namespace weft {

enum class Dtype : std::uint8_t { f32, bf16, f16, f8e4m3, f8e5m2, f64, i64, i32, u8 };

constexpr std::int64_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::i64:
      return 8;
    case Dtype::f32:
    case Dtype::i32:
      return 4;
    case Dtype::bf16:
    case Dtype::f16:
      return 2;
    case Dtype::f8e4m3:
    case Dtype::f8e5m2:
    case Dtype::u8:
      return 1;
  }
  return 0;
}

const char* name(Dtype dtype);
std::ostream& operator<<(std::ostream& out, Dtype dtype);

constexpr bool is_half(Dtype dtype) { return dtype == Dtype::bf16 || dtype == Dtype::f16; }
/// The types that layers compute in.
constexpr bool is_float(Dtype dtype) { return dtype == Dtype::f32 || is_half(dtype); }

/// Only the types listed here can be read out of a tensor.
template <class T>
inline constexpr Dtype dtype_of = [] {
  static_assert(sizeof(T) == 0, "no Dtype stands for this type");
  return Dtype::u8;
}();
template <>
inline constexpr Dtype dtype_of<float> = Dtype::f32;
template <>
inline constexpr Dtype dtype_of<bf16> = Dtype::bf16;
template <>
inline constexpr Dtype dtype_of<f16> = Dtype::f16;
template <>
inline constexpr Dtype dtype_of<f8e4m3> = Dtype::f8e4m3;
template <>
inline constexpr Dtype dtype_of<f8e5m2> = Dtype::f8e5m2;
template <>
inline constexpr Dtype dtype_of<double> = Dtype::f64;
template <>
inline constexpr Dtype dtype_of<std::int64_t> = Dtype::i64;
template <>
inline constexpr Dtype dtype_of<std::int32_t> = Dtype::i32;
template <>
inline constexpr Dtype dtype_of<std::uint8_t> = Dtype::u8;

/// Calls f.operator()<T>() with the C++ type behind a type that layers compute in.
template <class F>
decltype(auto) visit_float(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::f32:
      return std::forward<F>(f).template operator()<float>();
    case Dtype::bf16:
      return std::forward<F>(f).template operator()<bf16>();
    case Dtype::f16:
      return std::forward<F>(f).template operator()<f16>();
    default:
      fail(Kind::internal, "visit_float: ", name(dtype), " is not a type that layers compute in");
  }
}

}  // namespace weft
