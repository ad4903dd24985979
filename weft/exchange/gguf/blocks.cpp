#include "weft/exchange/gguf/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/half.h"
#include "weft/exchange/gguf/packed.h"
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

/// In the order in which they are named: those whose numbers lie one by one, and those in blocks.
std::vector<NumberType> known_types() {
  std::vector<NumberType> out{NumberType::f32, NumberType::f16, NumberType::bf16};
  for (const Packing& one : packings()) out.push_back(one.type);
  return out;
}

/// Whole blocks, of which the first and the last may be wanted in part.
void decode_blocks(const Packing& packing, const std::byte* stored, std::int64_t first, std::span<float> to) {
  std::array<float, most_in_a_block> numbers;
  while (!to.empty()) {
    const std::int64_t skipped = first % packing.numbers;
    packing.decode(stored + first / packing.numbers * packing.bytes, numbers.data());
    const std::int64_t count = std::min(std::ssize(to), packing.numbers - skipped);
    std::copy_n(numbers.begin() + skipped, count, to.begin());
    to = to.subspan(std::size_t(count));
    first += count;
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
  for (const NumberType one : known_types())
    if (number == std::uint32_t(one)) return one;
  return std::nullopt;
}

std::string names_of_all() {
  std::vector<std::string> names;
  for (const NumberType one : known_types()) names.push_back(name_of(one));
  const std::string last = names.back();
  names.pop_back();
  return text(join(names, ", "), " and ", last);
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
  if (type == NumberType::f16) return 1;
  if (type == NumberType::q8_0) return 7;
  return type == NumberType::bf16 ? 32 : 0;
}

std::int64_t unit_of(NumberType type) {
  const Packing* packing = packing_of(type);
  return packing != nullptr ? packing->numbers : 1;
}

std::int64_t bytes_of(NumberType type, std::int64_t count) {
  const Packing* packing = packing_of(type);
  return packing != nullptr ? count / packing->numbers * packing->bytes : count * size_of(dtype_of(type));
}

void decode(NumberType type, std::span<const std::byte> stored, std::int64_t first, std::span<float> to) {
  if (const Packing* packing = packing_of(type)) return decode_blocks(*packing, stored.data(), first, to);
  widen(stored, dtype_of(type), {first, 1, std::ssize(to)}, to.data());
}

std::vector<std::byte> encode(NumberType type, std::span<const float> values, std::string_view who) {
  std::vector<std::byte> out(std::size_t(bytes_of(type, std::ssize(values))));
  if (type == NumberType::q8_0) {
    const Packing& packing = *packing_of(type);
    const auto block = std::size_t(packing.numbers);
    for (std::size_t at = 0; at < values.size(); at += block)
      encode_block(values.subspan(at, block), out.data() + at / block * std::size_t(packing.bytes), who);
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
