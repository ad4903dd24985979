// One file of named tensors: eight bytes of length, a JSON header, and the tensors' bytes without a gap.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/shape.h"

namespace weft::checkpoint {

/// A tensor in a file. `begin` counts from the first byte behind the header.
struct Entry {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::int64_t begin = 0;

  [[nodiscard]] std::int64_t bytes() const { return shape.elements() * size_of(dtype); }
};

struct Header {
  std::vector<Entry> entries;                // in the order of their bytes
  std::map<std::string, std::string> notes;  // "__metadata__"
  std::int64_t data_at = 0;                  // where in the file the tensors' bytes start
};

/// The longest header that other readers of the format take.
inline constexpr std::int64_t most_header_bytes = 100'000'000;

/// Orders the entries so that each is aligned for its type, gives each its place, and returns the file's
/// first bytes. Fails where a name is empty, unprintable or given twice.
std::string lay_out(std::vector<Entry>& entries, const std::map<std::string, std::string>& notes = {});

/// Reads the header of a file that anyone may have written. Fails with Kind::data unless the entries fill the
/// bytes behind the header exactly, none overlapping another.
Header read_header(std::span<const std::byte> file, const std::string& who);

/// A file, mapped: a tensor's bytes are read when they are touched.
class TensorFile {
 public:
  explicit TensorFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return map_.path(); }
  const Header& header() const { return header_; }
  std::int64_t size() const { return map_.size(); }
  /// Everything before the tensors' bytes.
  std::span<const std::byte> header_bytes() const { return map_.bytes(0, header_.data_at); }
  /// Fails naming the file and the tensor where there is none.
  const Entry& at(const std::string& name) const;
  std::span<const std::byte> bytes(const Entry& entry) const {
    return map_.bytes(header_.data_at + entry.begin, entry.bytes());
  }

 private:
  MappedFile map_;
  Header header_;
  std::map<std::string, std::size_t> places_;
};

/// Writes a file whose first bytes lay_out() gave; `fill` is called for every entry in order and must write
/// exactly its bytes. The name holds the whole file or what it held before.
void write_tensors(const std::filesystem::path& path, const std::string& first_bytes,
                   std::span<const Entry> entries, const std::function<void(const Entry&, File&)>& fill,
                   const FileSystem& files = disk());

/// Whether a tensor's name may stand in a file and in a message.
bool good_name(std::string_view name);

}  // namespace weft::checkpoint
