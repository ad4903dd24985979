// How weft says no: one exception type, a kind, the place, and a sentence.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace weft {

enum class Kind {
  usage,     // the person asked for something impossible
  data,      // a file does not hold what it should
  shape,     // tensors do not fit together
  device,    // CUDA, cuDNN, oneDNN or memory failed
  comm,      // a peer failed or messages do not match
  internal,  // weft contradicts itself: a bug
};

/// "usage", "data", …: how a kind is called in messages.
const char* word(Kind kind);

/// Where in the source something was said. The builtins stand in for std::source_location,
/// which clang 14 cannot compile and clang-tidy 14 therefore cannot read.
struct Place {
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

class Error : public std::runtime_error {
 public:
  Error(Kind kind, const std::string& what, Place at) : std::runtime_error(what), kind_(kind), at_(at) {}
  Kind kind() const noexcept { return kind_; }
  const Place& where() const noexcept { return at_; }

 private:
  Kind kind_;
  Place at_;
};

/// Joins anything printable: text("rank ", 3, " of ", 8).
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Carries the caller's place beside the kind, so that fail() needs no macro.
struct At {
  constexpr At(Kind k, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kind(k), place{file, line} {}
  Kind kind;
  Place place;
};

template <class... Parts>
[[noreturn]] void fail(At at, const Parts&... parts) {
  throw Error(at.kind, text(parts...), at.place);
}

}  // namespace weft
