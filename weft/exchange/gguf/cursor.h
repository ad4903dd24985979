// Goes through the bytes of a GGUF file's front and never beyond them.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/error.h"

namespace weft::exchange::gguf {

class Cursor {
 public:
  Cursor(std::span<const std::byte> file, const std::string& who) : file_(file), who_(who) {}

  const std::string& who() const { return who_; }
  std::int64_t at() const { return at_; }
  std::int64_t left() const { return std::ssize(file_) - at_; }

  template <class T>
  T number(std::string_view what) {
    must_have(sizeof(T), what);
    T out;
    std::memcpy(&out, file_.data() + at_, sizeof out);
    at_ += std::int64_t(sizeof out);
    return out;
  }

  /// How many of something follow, of which each takes at least `least` bytes.
  std::int64_t count(std::string_view what, std::int64_t least) {
    const auto found = number<std::uint64_t>(what);
    if (found > std::uint64_t(left()) / std::uint64_t(least))
      fail(Kind::data, who_, ": byte ", at_ - 8, " says ", found, ' ', what, ", and ", left(),
           " bytes are left");
    return std::int64_t(found);
  }

  std::string text(std::string_view what) {
    const std::int64_t length = count(what, 1);
    std::string out(reinterpret_cast<const char*>(file_.data() + at_), std::size_t(length));
    at_ += length;
    return out;
  }

 private:
  void must_have(std::size_t bytes, std::string_view what) const {
    if (std::int64_t(bytes) > left())
      fail(Kind::data, who_, ": ends at byte ", std::ssize(file_), ", within ", what);
  }

  std::span<const std::byte> file_;
  const std::string& who_;
  std::int64_t at_ = 0;
};

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

}  // namespace weft::exchange::gguf
