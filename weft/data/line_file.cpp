#include "weft/data/line_file.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"

namespace weft::data {
namespace {

constexpr std::string_view blank = " \t\r\v\f";

// What gzip and zstd begin with; no line of JSON does.
bool is_packed(std::string_view text) {
  return text.starts_with("\x1f\x8b") || text.starts_with("\x28\xb5\x2f\xfd");
}

std::string_view up_to_end(std::string_view text) {
  const void* const end = std::memchr(text.data(), '\n', text.size());
  return end == nullptr
             ? text
             : text.substr(0, static_cast<std::size_t>(static_cast<const char*>(end) - text.data()));
}

}  // namespace

LineFile::LineFile(const std::filesystem::path& path) : name_(path.string()), file_(path) {
  const std::string_view all = text();
  if (is_packed(all))
    fail(Kind::data, name_, ": is packed, and its lines are read in any order: unpack it first");
  for (std::size_t at = 0; at < all.size();) {
    const std::string_view one = up_to_end(all.substr(at));
    if (one.find_first_not_of(blank) != std::string_view::npos)
      begins_.push_back(static_cast<std::int64_t>(at));
    at += one.size() + 1;
  }
}

std::string_view LineFile::text() const {
  const auto bytes = file_.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view LineFile::line(std::int64_t i) const {
  std::string_view one = up_to_end(text().substr(static_cast<std::size_t>(begins_[std::size_t(i)])));
  if (one.ends_with('\r')) one.remove_suffix(1);
  return one;
}

std::int64_t LineFile::number(std::int64_t i) const {
  const std::string_view before = text().substr(0, static_cast<std::size_t>(begins_[std::size_t(i)]));
  return 1 + std::ranges::count(before, '\n');
}

}  // namespace weft::data
