// What every index begins with, of token files and of files of numbers: 9 bytes of magic, version, type, two
// counts.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "weft/data/token_file.h"

namespace weft::data {

inline constexpr std::string_view index_magic{"MMIDIDX\0\0", 9};
inline constexpr std::size_t index_header_bytes = 34;

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t at) {
  return Packed<T>(bytes.subspan(at, sizeof(T)))[0];
}

}  // namespace weft::data
