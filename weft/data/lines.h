// Lines of many files in order, in blocks, each line with the file and number a person would look for it by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/byte_stream.h"

namespace weft::data {

/// Consecutive lines of one file.
struct LineBlock {
  std::string file;
  std::int64_t first = 1;         // number of the first line, from 1
  std::int64_t index = 0;         // number of the first line in all files together, from 0
  std::string text;               // whole lines with their ends
  std::vector<std::size_t> ends;  // behind the text of each line, its end left out

  std::size_t size() const { return ends.size(); }
  std::string_view line(std::size_t i) const;
};

class LineReader {
 public:
  explicit LineReader(std::vector<std::filesystem::path> files);
  /// False at the end. Lines of 1 GiB and more are refused.
  [[nodiscard]] bool next(LineBlock& block);
  /// The share of all files' bytes that has been read.
  double progress() const;
  std::int64_t bytes_read() const;
  /// Files that have been read and hold no line.
  const std::vector<std::string>& empty() const { return empty_; }

 private:
  bool open_next();

  std::vector<std::filesystem::path> files_;
  std::size_t next_file_ = 0;
  std::vector<std::string> empty_;
  std::unique_ptr<ByteStream> stream_;
  std::string carry_;  // the beginning of a line whose end has not been read
  bool at_end_ = true;
  std::int64_t line_ = 1, index_ = 0;
  std::int64_t bytes_before_ = 0, bytes_all_ = 0;
};

/// The files that patterns name (*, ? and [] as in a shell), sorted within each pattern; a pattern without a
/// match is refused.
std::vector<std::filesystem::path> files_of(const std::vector<std::string>& patterns);

}  // namespace weft::data
