// The lines of a file by number, in any order: the file is mapped, and where each line begins is found in one
// pass.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/file.h"

namespace weft::data {

/// Lines without a word are passed over. Const methods may be called by many threads at once.
class LineFile {
 public:
  /// Refuses packed files (gzip, zstd), in which no line is found without all before it.
  explicit LineFile(const std::filesystem::path& path);
  const std::string& name() const { return name_; }
  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()); }
  /// Without its end.
  std::string_view line(std::int64_t i) const;
  /// Its number as an editor counts, from 1, lines without a word included. Takes a pass over what is before.
  std::int64_t number(std::int64_t i) const;

 private:
  std::string_view text() const;

  std::string name_;
  MappedFile file_;
  std::vector<std::int64_t> begins_;
};

}  // namespace weft::data
