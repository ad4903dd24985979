#include "weft/exchange/gguf/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/half.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange::gguf {
namespace {

constexpr std::int64_t scale_bytes = 2;

/// Those that llama.cpp knows and once knew; an empty one was never given.
constexpr std::array<std::string_view, 41> type_names{
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4"};

void decode_blocks(std::span<const std::byte> stored, std::int64_t first, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::int64_t at = first + std::int64_t(i);
    const std::byte* block = stored.data() + at / block_numbers * block_bytes;
    f16 scale;
    std::memcpy(&scale, block, sizeof scale);
    const auto q = static_cast<std::int8_t>(block[scale_bytes + at % block_numbers]);
    to[i] = static_cast<float>(scale) * float(q);
  }
}

void encode_block(std::span<const float> values, std::byte* to, std::string_view who) {
  float greatest = 0;
  for (const float value : values) {
    if (!std::isfinite(value))
      fail(Kind::data, who, ": holds a number that is not finite, which Q8_0 has no place for");
    greatest = std::max(greatest, std::abs(value));
  }
  const float d = greatest / 127;
  const f16 scale(d);
  if (!std::isfinite(static_cast<float>(scale)))
    fail(Kind::data, who, ": holds ", greatest, ", and Q8_0 goes up to 8.3e6: write it as bf16 or f32");
  const float inverse = std::isfinite(1 / d) ? 1 / d : 0;  // of what f16 cannot scale nothing is left
  std::memcpy(to, &scale, sizeof scale);
  for (std::size_t i = 0; i < values.size(); ++i)
    to[scale_bytes + std::ptrdiff_t(i)] = static_cast<std::byte>(
        static_cast<std::int8_t>(std::clamp(std::round(values[i] * inverse), -127.0F, 127.0F)));
}

}  // namespace

std::string name_of(std::uint32_t number) {
  if (number < type_names.size()) return std::string(type_names[number]);
  return "type " + std::to_string(number);
}

std::optional<NumberType> number_type(std::uint32_t number) {
  for (const NumberType one : {NumberType::f32, NumberType::f16, NumberType::q8_0, NumberType::bf16})
    if (number == std::uint32_t(one)) return one;
  return std::nullopt;
}

Dtype dtype_of(NumberType type) {
  if (type == NumberType::f16) return Dtype::f16;
  return type == NumberType::bf16 ? Dtype::bf16 : Dtype::f32;
}

NumberType number_type_of(Dtype dtype) {
  if (dtype == Dtype::f16) return NumberType::f16;
  return dtype == Dtype::bf16 ? NumberType::bf16 : NumberType::f32;
}

std::int64_t file_type_of(NumberType type) {
  switch (type) {
    case NumberType::f16:
      return 1;
    case NumberType::q8_0:
      return 7;
    case NumberType::bf16:
      return 32;
    case NumberType::f32:
      break;
  }
  return 0;
}

std::int64_t bytes_of(NumberType type, std::int64_t count) {
  return type == NumberType::q8_0 ? count / block_numbers * block_bytes : count * size_of(dtype_of(type));
}

void decode(NumberType type, std::span<const std::byte> stored, std::int64_t first, std::span<float> to) {
  if (type == NumberType::q8_0) return decode_blocks(stored, first, to);
  widen(stored, dtype_of(type), {first, 1, std::ssize(to)}, to.data());
}

std::vector<std::byte> encode(NumberType type, std::span<const float> values, std::string_view who) {
  std::vector<std::byte> out(std::size_t(bytes_of(type, std::ssize(values))));
  if (type == NumberType::q8_0) {
    for (std::size_t at = 0; at < values.size(); at += block_numbers)
      encode_block(values.subspan(at, block_numbers), out.data() + at / block_numbers * block_bytes, who);
    return out;
  }
  visit_float(dtype_of(type), [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value(values[i]);
      std::memcpy(out.data() + i * sizeof(T), &value, sizeof value);
    }
  });
  return out;
}

}  // namespace weft::exchange::gguf
