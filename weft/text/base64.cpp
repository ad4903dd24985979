#include "weft/text/base64.h"

#include <cstdint>

#include "weft/base/error.h"

namespace weft {

namespace {

int value_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  if (letter == '+') return 62;
  return letter == '/' ? 63 : -1;
}

}  // namespace

std::string base64_decoded(std::string_view letters, std::string_view who) {
  std::string_view body = letters;
  for (int k = 0; k < 2 && body.ends_with('='); ++k) body.remove_suffix(1);
  if (letters.size() % 4 != 0 || body.size() % 4 == 1) {
    fail(Kind::data, who, ": base64 of ", letters.size(), " letters, expected a multiple of 4");
  }
  std::string bytes;
  bytes.reserve(body.size() * 3 / 4);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char letter : body) {
    const int value = value_of(letter);
    if (value < 0) fail(Kind::data, who, ": '", letter, "' is no letter of base64");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes.push_back(static_cast<char>(bits >> held & 0xff));
    }
  }
  return bytes;
}

}  // namespace weft
