// Numbers are read one by one where they lie: an index is walked through once in a while, never in a loop
// that waits.
#include "weft/data/number_rows.h"

#include <limits>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/data/index_bytes.h"

namespace weft::data {
namespace {

NumberType checked_type(std::span<const std::byte> bytes, const std::string& who) {
  if (bytes.size() < index_header_bytes)
    fail(Kind::data, who, ": ", bytes.size(), " bytes, the header of an index takes ", index_header_bytes,
         "; the file is truncated");
  if (std::string_view(reinterpret_cast<const char*>(bytes.data()), index_magic.size()) != index_magic)
    fail(Kind::data, who, ": does not begin with MMIDIDX, so it is no index of samples");
  if (const auto version = value_at<std::uint64_t>(bytes, 9); version != 1)
    fail(Kind::data, who, ": version ", version, ", expected 1");
  const auto code = unsigned(value_at<std::uint8_t>(bytes, 17));
  if (code < 1 || code > 8)
    fail(Kind::data, who, ": number type code ", code, ", the known codes are 1 to 8");
  return NumberType(code);
}

void check_rows(const NumberIndex& index, std::int64_t bin_bytes, const std::string& who) {
  for (std::size_t i = 0; i < index.lengths.size(); ++i) {
    const std::int64_t length = index.lengths[i], at = index.pointers[i];
    if (length < 0 || at < 0 || at > bin_bytes || length * width(index.type) > bin_bytes - at)
      fail(Kind::data, who, ": row ", i, " has ", length, " numbers from byte ", at,
           " on, and the .bin holds ", bin_bytes, " bytes: they are not of one run, or one is truncated");
  }
}

template <class T>
std::int64_t number_at(std::span<const std::byte> bytes, std::int64_t at) {
  return std::int64_t(value_at<T>(bytes, std::size_t(at)));
}

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_number(std::string& to, std::int64_t value, NumberType type) {
  const std::size_t bytes = std::size_t(width(type));  // the low bytes come first on every machine we run on
  to.append(reinterpret_cast<const char*>(&value), bytes);
}

}  // namespace

std::int64_t width(NumberType type) {
  switch (type) {
    case NumberType::u8:
    case NumberType::i8:
      return 1;
    case NumberType::i16:
    case NumberType::u16:
      return 2;
    case NumberType::i32:
    case NumberType::u32:
      return 4;
    case NumberType::i64:
    case NumberType::u64:
      return 8;
  }
  return 8;
}

NumberType number_type_for(std::int64_t least, std::int64_t most) {
  const auto holds = [&](auto type) {
    using T = decltype(type);
    return std::cmp_greater_equal(least, std::numeric_limits<T>::min()) &&
           std::cmp_less_equal(most, std::numeric_limits<T>::max());
  };
  if (least >= 0) {
    if (holds(std::uint8_t())) return NumberType::u8;
    if (holds(std::uint16_t())) return NumberType::u16;
    return holds(std::uint32_t()) ? NumberType::u32 : NumberType::u64;
  }
  if (holds(std::int8_t())) return NumberType::i8;
  if (holds(std::int16_t())) return NumberType::i16;
  return holds(std::int32_t()) ? NumberType::i32 : NumberType::i64;
}

NumberIndex parse_number_index(std::span<const std::byte> bytes, std::int64_t bin_bytes,
                               const std::string& who) {
  NumberIndex index{.type = checked_type(bytes, who), .lengths = {}, .pointers = {}};
  const auto rows = value_at<std::uint64_t>(bytes, 18);
  const std::uint64_t room = bytes.size() - index_header_bytes;
  if (rows > room / 12)
    fail(Kind::data, who, ": claims ", rows, " rows, but holds only ", bytes.size(),
         " bytes; the file is truncated or damaged");
  index.lengths = Packed<std::int32_t>(bytes.subspan(index_header_bytes, rows * 4));
  index.pointers = Packed<std::int64_t>(bytes.subspan(index_header_bytes + rows * 4, rows * 8));
  check_rows(index, bin_bytes, who);
  return index;
}

NumberRows::NumberRows(const std::string& prefix)
    : prefix_(prefix),
      idx_(prefix + ".idx"),
      bin_(prefix + ".bin"),
      index_(parse_number_index(idx_.bytes(), bin_.size(), prefix + ".idx")) {}

std::int64_t NumberRows::total() const {
  std::int64_t sum = 0;
  for (std::int64_t row = 0; row < size(); ++row) sum += length(row);
  return sum;
}

std::int64_t NumberRows::at(std::int64_t row, std::int64_t i) const {
  const auto bytes = bin_.bytes();
  const std::int64_t at = index_.pointers[std::size_t(row)] + i * width(index_.type);
  switch (index_.type) {
    case NumberType::u8:
      return number_at<std::uint8_t>(bytes, at);
    case NumberType::i8:
      return number_at<std::int8_t>(bytes, at);  // NOLINT(bugprone-signed-char-misuse): it is a number
    case NumberType::i16:
      return number_at<std::int16_t>(bytes, at);
    case NumberType::i32:
      return number_at<std::int32_t>(bytes, at);
    case NumberType::i64:
      return number_at<std::int64_t>(bytes, at);
    case NumberType::u16:
      return number_at<std::uint16_t>(bytes, at);
    case NumberType::u32:
      return number_at<std::uint32_t>(bytes, at);
    case NumberType::u64:
      break;
  }
  const auto number = value_at<std::uint64_t>(bytes, std::size_t(at));
  if (std::cmp_greater(number, std::numeric_limits<std::int64_t>::max()))
    fail(Kind::data, prefix_, ".bin: row ", row, " holds ", number, ", which is no number of a sample");
  return std::int64_t(number);
}

void RowsToWrite::add(std::span<const std::int64_t> row) {
  numbers.insert(numbers.end(), row.begin(), row.end());
  lengths.push_back(narrow<std::int32_t>(std::ssize(row)));
}

void write_number_rows(const std::string& prefix, const RowsToWrite& rows, NumberType type,
                       DocumentEnds ends) {
  const std::uint64_t bounds = ends == DocumentEnds::twice ? 3 : 2;
  std::string numbers, index(index_magic);
  put(index, std::uint64_t{1});
  put(index, std::uint8_t(type));
  put(index, std::uint64_t(rows.lengths.size()));
  put(index, bounds);
  for (const std::int32_t length : rows.lengths) put(index, length);
  std::int64_t at = 0;
  for (const std::int32_t length : rows.lengths) {
    put(index, at);
    at += length * width(type);
  }
  put(index, std::int64_t{0});
  for (std::uint64_t i = 1; i < bounds; ++i) put(index, std::int64_t(rows.lengths.size()));
  for (const std::int64_t number : rows.numbers) put_number(numbers, number, type);
  write_atomically(prefix + ".bin", numbers);
  write_atomically(prefix + ".idx", index);
}

}  // namespace weft::data
