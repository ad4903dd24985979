// The records of a zip that compresses nothing, found by its central directory. Every record lies in the
// file, and no two share a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::exchange::torch {

struct Record {
  std::string_view name;  // of the file's bytes
  std::uint64_t header = 0, data = 0, bytes = 0;
  std::uint32_t crc = 0;
};

/// Sorted by name. Fails with Kind::data where anything is not as torch and Python's zipfile write it.
std::vector<Record> zip_records(std::span<const std::byte> file, const std::string& who);

}  // namespace weft::exchange::torch
