// Arrays in NumPy's .npy files, as numpy.save writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/file.h"
#include "weft/data/array.h"

namespace weft::data {

template <class T>
inline constexpr std::string_view npy_type = "";
template <>
inline constexpr std::string_view npy_type<std::int16_t> = "<i2";
template <>
inline constexpr std::string_view npy_type<std::int32_t> = "<i4";
template <>
inline constexpr std::string_view npy_type<std::int64_t> = "<i8";
template <>
inline constexpr std::string_view npy_type<std::uint32_t> = "<u4";

/// "{'descr': '<i4', …}" with all that stands before the numbers; columns 1 is a plain list.
std::string npy_header(std::string_view type, std::int64_t rows, std::int64_t columns);

/// Writes `values` as rows of `columns`, as a cache file.
void write_npy(const std::filesystem::path& path, std::string_view type, std::span<const std::byte> values,
               std::int64_t columns = 1);
template <class T>
void write_npy(const std::filesystem::path& path, std::span<const T> values, std::int64_t columns = 1) {
  write_npy(path, npy_type<T>, std::as_bytes(values), columns);
}

struct NpyPlace {
  std::int64_t at, rows, columns;
};
/// Where the numbers of a file stand; refuses other types, other shapes and files that are too short.
NpyPlace npy_place(const MappedFile& file, std::string_view type, std::size_t width);

/// Rows of `columns` numbers, mapped.
template <class T>
Array<T> read_npy(const std::filesystem::path& path, std::int64_t columns = 1) {
  MappedFile file(path);
  const NpyPlace place = npy_place(file, npy_type<T>, sizeof(T));
  if (place.columns != columns) {
    fail(Kind::data, path.string(), ": rows of ", place.columns, " numbers, expected ", columns,
         "; remove the cache");
  }
  return Array<T>(std::move(file), place.at, place.rows * place.columns);
}

}  // namespace weft::data
