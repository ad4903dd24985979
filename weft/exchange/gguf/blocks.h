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

/// Those that weft reads and writes, by the numbers that files have for them.
enum class NumberType : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30 };

/// "Q8_0", or "type 77" where it is none that is known.
std::string name_of(std::uint32_t number);
inline std::string name_of(NumberType type) { return name_of(std::uint32_t(type)); }
/// None: weft does not read it.
std::optional<NumberType> number_type(std::uint32_t number);
/// What ours are of such a type; q8_0: f32, which holds all that it can say.
Dtype dtype_of(NumberType type);
NumberType number_type_of(Dtype dtype);
/// What a file of mostly this type is called in "general.file_type".
std::int64_t file_type_of(NumberType type);

/// So many numbers share a scale, and a row holds whole blocks.
inline constexpr std::int64_t block_numbers = 32, block_bytes = 34;
/// How many numbers a row of such a type must be a multiple of.
constexpr std::int64_t unit_of(NumberType type) { return type == NumberType::q8_0 ? block_numbers : 1; }
/// Of `count` numbers, whole blocks where it has blocks.
std::int64_t bytes_of(NumberType type, std::int64_t count);

/// Numbers `first`, first + 1, … of what is stored.
void decode(NumberType type, std::span<const std::byte> stored, std::int64_t first, std::span<float> to);
/// Rows behind each other. Of q8_0: d = greatest/127 in f32, q = x·(1/d) rounded, halves away from zero, and
/// only then d to f16. Fails with Kind::data, naming `who`, where a number has no place in a block.
std::vector<std::byte> encode(NumberType type, std::span<const float> values, std::string_view who);

}  // namespace weft::exchange::gguf
