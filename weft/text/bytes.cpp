#include "weft/text/bytes.h"

#include "weft/text/unicode.h"

namespace weft {

std::string ByteAlphabet::written(std::string_view bytes) const {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes) unicode::append(out, code_of(static_cast<unsigned char>(byte)));
  return out;
}

std::optional<std::string> ByteAlphabet::bytes(std::string_view written) const {
  std::string out;
  out.reserve(written.size());
  for (std::size_t at = 0; at < written.size();) {
    const unicode::Rune rune = unicode::rune_at(written, at);
    const int byte = byte_of(rune.code);
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    at += rune.bytes;
  }
  return out;
}

}  // namespace weft
