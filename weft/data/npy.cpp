// The .npy format, version 1.0: magic, a header that is a Python dictionary, numbers.
#include "weft/data/npy.h"

#include <charconv>
#include <limits>

#include "weft/base/error.h"
#include "weft/data/cache_file.h"

namespace weft::data {
namespace {

constexpr std::string_view magic("\x93NUMPY\x01\x00", 8);
constexpr std::string_view not_ours = ", expected an array as numpy.save writes it; remove the cache";

// The text behind `key` in the header.
std::string_view after(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  return at == std::string_view::npos ? std::string_view() : header.substr(at + key.size());
}

std::int64_t number(std::string_view& text) {
  std::int64_t value = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return value;
}

}  // namespace

std::string npy_header(std::string_view type, std::int64_t rows, std::int64_t columns) {
  std::string dictionary = text("{'descr': '", type, "', 'fortran_order': False, 'shape': (", rows, ",");
  if (columns != 1) dictionary += text(" ", columns);
  dictionary += "), }";
  const std::size_t before = magic.size() + 2;
  const std::size_t total = (before + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.append(total - before - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string header(magic);
  header += static_cast<char>(dictionary.size() & 255);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

void write_npy(const std::filesystem::path& path, std::string_view type, std::span<const std::byte> values,
               std::int64_t columns) {
  const std::int64_t width = type.back() - '0';
  const auto rows = static_cast<std::int64_t>(values.size()) / (width * columns);
  write_cache_file(path, [&](File& out) {
    out.write(npy_header(type, rows, columns));
    out.write(values);
  });
}

NpyPlace npy_place(const MappedFile& file, std::string_view type, std::size_t width) {
  const std::string_view all(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const std::string who = file.path().string();
  if (all.size() < 10 || !all.starts_with(magic))
    fail(Kind::data, who, ": no .npy header of version 1.0", not_ours);
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(all[8])) +
                      256 * static_cast<std::size_t>(static_cast<unsigned char>(all[9]));
  if (all.size() < 10 + length)
    fail(Kind::data, who, ": ", all.size(), " bytes, the header alone takes ", 10 + length,
         "; remove the cache");
  const std::string_view header = all.substr(10, length);
  if (!after(header, "'descr': '").starts_with(type))
    fail(Kind::data, who, ": numbers of another type than ", type, "; remove the cache");
  std::string_view shape = after(header, "'shape': (");
  NpyPlace place{static_cast<std::int64_t>(10 + length), number(shape), 1};
  if (shape.starts_with(", ")) {
    shape.remove_prefix(2);
    place.columns = number(shape);
  }
  const std::int64_t room = (file.size() - place.at) / static_cast<std::int64_t>(width);
  const bool shaped =
      place.rows >= 0 && place.columns >= 1 && after(header, "'fortran_order': ").starts_with("False");
  if (!shaped || place.at % static_cast<std::int64_t>(width) != 0)
    fail(Kind::data, who, ": the header does not give a shape", not_ours);
  if (place.rows > room / place.columns) {
    fail(Kind::data, who, ": claims ", place.rows, " rows of ", place.columns, " numbers, but holds only ",
         room, "; the file is truncated, remove the cache");
  }
  return place;
}

}  // namespace weft::data
