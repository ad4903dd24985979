// Bytes of a file, unpacked on the way where it is gzip or zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace weft::data {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Fills `to` from its beginning, and says with how much; less than asked for only at the end.
  [[nodiscard]] virtual std::size_t read(std::span<std::byte> to) = 0;
  /// How far the file itself has been read, and how long it is: for progress.
  virtual std::int64_t bytes_read() const = 0;
  virtual std::int64_t file_size() const = 0;
};

/// Whether a file is gzip or zstd, as its first bytes say.
bool is_packed(const std::filesystem::path& path);

/// Packed or not is told by the first bytes, whatever the name says. Memory does not depend on the file.
std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path);

}  // namespace weft::data
