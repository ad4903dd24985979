#include "weft/data/lines.h"

#include <glob.h>

#include <cstring>
#include <utility>

#include "weft/base/error.h"

namespace weft::data {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;
constexpr std::size_t most_line_bytes = std::size_t{1} << 30;

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::string_view LineBlock::line(std::size_t i) const {
  const std::size_t begin = i == 0 ? 0 : ends[i - 1] + 1;
  return without_return(std::string_view(text).substr(begin, ends[i] - begin));
}

LineReader::LineReader(std::vector<std::filesystem::path> files) : files_(std::move(files)) {
  for (const auto& file : files_) bytes_all_ += static_cast<std::int64_t>(std::filesystem::file_size(file));
}

bool LineReader::open_next() {
  if (stream_) bytes_before_ += stream_->file_size();
  if (stream_ && line_ == 1) empty_.push_back(files_[next_file_ - 1].string());
  stream_.reset();
  if (next_file_ == files_.size()) return false;
  stream_ = open_stream(files_[next_file_++]);
  line_ = 1;
  at_end_ = false;
  return true;
}

bool LineReader::next(LineBlock& block) {
  for (;;) {
    if (at_end_ && carry_.empty() && !open_next()) return false;
    block.text = std::exchange(carry_, {});
    block.ends.clear();
    std::size_t scanned = 0;
    while (!at_end_ && block.ends.empty()) {
      const std::size_t before = block.text.size();
      block.text.resize(before + block_bytes);
      const std::size_t count = stream_->read(std::as_writable_bytes(std::span(block.text).subspan(before)));
      block.text.resize(before + count);
      at_end_ = count < block_bytes;
      const char* const data = block.text.data();
      while (const void* end = std::memchr(data + scanned, '\n', block.text.size() - scanned)) {
        block.ends.push_back(static_cast<std::size_t>(static_cast<const char*>(end) - data));
        scanned = block.ends.back() + 1;
      }
      if (block.ends.empty()) scanned = block.text.size();
      if (block.ends.empty() && block.text.size() > most_line_bytes) {
        fail(Kind::data, files_[next_file_ - 1].string(), ":", line_,
             ": a line of more than 1 GiB; is this a file of lines?");
      }
    }
    const std::size_t whole = block.ends.empty() ? 0 : block.ends.back() + 1;
    if (at_end_ && whole < block.text.size()) {
      block.ends.push_back(block.text.size());  // the last line has no end
    } else {
      carry_ = block.text.substr(whole);
      block.text.resize(whole);
    }
    if (block.ends.empty()) continue;
    block.file = files_[next_file_ - 1].string();
    block.first = line_;
    block.index = index_;
    line_ += static_cast<std::int64_t>(block.size());
    index_ += static_cast<std::int64_t>(block.size());
    return true;
  }
}

std::int64_t LineReader::bytes_read() const { return bytes_before_ + (stream_ ? stream_->bytes_read() : 0); }

double LineReader::progress() const {
  return bytes_all_ == 0 ? 1.0 : static_cast<double>(bytes_read()) / static_cast<double>(bytes_all_);
}

std::vector<std::filesystem::path> files_of(const std::vector<std::string>& patterns) {
  std::vector<std::filesystem::path> files;
  for (const std::string& pattern : patterns) {
    if (std::filesystem::is_regular_file(pattern)) {
      files.emplace_back(pattern);
      continue;
    }
    glob_t found{};
    const int result = glob(pattern.c_str(), 0, nullptr, &found);
    for (std::size_t i = 0; result == 0 && i < found.gl_pathc; ++i) {
      if (std::filesystem::is_regular_file(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
    }
    globfree(&found);
    if (result != 0) fail(Kind::usage, "{input} ", pattern, ": no such file");
  }
  if (files.empty()) fail(Kind::usage, "{input}: no files");
  return files;
}

}  // namespace weft::data
