// The types that numbers have in GGUF files, and rows of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor/dtype.h"

namespace weft::exchange::gguf {

/// Those that weft reads, by the numbers that files have for them.
enum class NumberType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq4_xs = 23,
  bf16 = 30
};

/// "Q8_0", or "type 77" where it is none that is known.
std::string name_of(std::uint32_t number);
inline std::string name_of(NumberType type) { return name_of(std::uint32_t(type)); }
/// None: weft does not read it.
std::optional<NumberType> number_type(std::uint32_t number);
/// "F32, F16, … and BF16".
std::string names_of_all();
/// What ours are of such a type; of one in blocks: f32, which holds all that it can say.
Dtype dtype_of(NumberType type);
NumberType number_type_of(Dtype dtype);
/// What a file of mostly this type, which is one that weft writes, is called in "general.file_type".
std::int64_t file_type_of(NumberType type);

/// How many numbers a row of such a type must be a multiple of: what a block has, where it has blocks.
std::int64_t unit_of(NumberType type);
/// Of `count` numbers, whole blocks where it has blocks.
std::int64_t bytes_of(NumberType type, std::int64_t count);
/// No type has more in a byte.
inline constexpr std::int64_t most_in_a_byte = 4;

/// Numbers `first`, first + 1, … of what is stored.
void decode(NumberType type, std::span<const std::byte> stored, std::int64_t first, std::span<float> to);
/// Rows behind each other, of f32, f16, bf16 or q8_0. Of the latter: d = greatest/127 in f32, q = x·(1/d)
/// rounded, halves away from zero, and only then d to f16. Fails with Kind::data, naming `who`, where a
/// number has no place in a block.
std::vector<std::byte> encode(NumberType type, std::span<const float> values, std::string_view who);

}  // namespace weft::exchange::gguf
