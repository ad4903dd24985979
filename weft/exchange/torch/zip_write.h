// A zip that compresses nothing, as torch reads it: each record's bytes begin at a multiple of 64 from the
// first one's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/file.h"

namespace weft::exchange::torch {

/// The largest record: what is larger is written in parts, so that sizes need no more than their 32 bits.
inline constexpr std::int64_t most_record_bytes = std::int64_t{1} << 30;

/// Behind what the file holds already.
class ZipWriter {
 public:
  explicit ZipWriter(File& file) : file_(file), start_(file.at()) {}
  void add(std::string_view name, std::span<const std::byte> bytes);
  void add(std::string_view name, std::string_view text) { add(name, std::as_bytes(std::span(text))); }
  /// Says which records there are. Returns the bytes of all.
  std::int64_t finish();

 private:
  struct Record {
    std::string name;
    std::uint32_t header = 0, bytes = 0, crc = 0;
  };
  File& file_;
  std::int64_t start_;
  std::vector<Record> records_;
};

/// A stream of torch.save: a value, and the storage `0` of its tensor, if it has one. Returns its bytes.
std::int64_t write_archive(File& file, std::string_view pickle, std::span<const std::byte> storage = {});

}  // namespace weft::exchange::torch
