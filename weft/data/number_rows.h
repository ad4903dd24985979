// Rows of whole numbers in PREFIX.idx and PREFIX.bin, as DeepSpeed's data analyzer writes them: laid out like
// token files, with other codes for the types.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/data/token_file.h"

namespace weft::data {

/// The values are the codes in the file.
enum class NumberType : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, u16 = 6, u32 = 7, u64 = 8 };
std::int64_t width(NumberType type);
/// The narrowest that holds both, as DeepSpeed chooses it: without a sign where none is needed.
NumberType number_type_for(std::int64_t least, std::int64_t most);

struct NumberIndex {
  NumberType type = NumberType::i64;
  Packed<std::int32_t> lengths;   // numbers of each row
  Packed<std::int64_t> pointers;  // where in the .bin each begins, in bytes
};
/// Refuses bytes that are no index of a .bin of so many bytes: every row lies in it.
NumberIndex parse_number_index(std::span<const std::byte> bytes, std::int64_t bin_bytes,
                               const std::string& who);

class NumberRows {
 public:
  explicit NumberRows(const std::string& prefix);
  const std::string& prefix() const { return prefix_; }
  std::int64_t size() const { return std::int64_t(index_.lengths.size()); }
  std::int64_t length(std::int64_t row) const { return index_.lengths[std::size_t(row)]; }
  std::int64_t total() const;  // numbers in all rows
  std::int64_t at(std::int64_t row, std::int64_t i) const;

 private:
  std::string prefix_;
  MappedFile idx_, bin_;
  NumberIndex index_;
};

/// Rows one behind the other.
struct RowsToWrite {
  std::vector<std::int64_t> numbers;
  std::vector<std::int32_t> lengths;
  void add(std::span<const std::int64_t> row);
};
/// Writes both files, byte for byte as DeepSpeed's builder does for one document. Where it merges files of
/// threads, the document is said to end twice.
enum class DocumentEnds : std::uint8_t { once, twice };
void write_number_rows(const std::string& prefix, const RowsToWrite& rows, NumberType type,
                       DocumentEnds ends = DocumentEnds::once);

}  // namespace weft::data
