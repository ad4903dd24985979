// GGUF files that tests put together byte by byte.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/support/source_dir.h"
#include "weft/base/file.h"
#include "weft/exchange/gguf/header.h"

namespace weft::testing {

inline std::filesystem::path gguf_golden(const std::string& name) {
  return std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden/exchange/gguf" / name;
}

template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}
inline std::string counted(std::string_view text) {
  return raw(std::uint64_t(text.size())) + std::string(text);
}
inline std::string u32_key(std::string_view key, std::uint32_t value) {
  return counted(key) + raw(std::uint32_t{4}) + raw(value);
}
inline std::string text_key(std::string_view key, std::string_view value) {
  return counted(key) + raw(std::uint32_t{8}) + counted(value);
}
/// A tensor of one size.
inline std::string tensor_said(std::string_view name, std::uint64_t size, std::uint32_t type,
                               std::uint64_t offset) {
  return counted(name) + raw(std::uint32_t{1}) + raw(size) + raw(type) + raw(offset);
}
/// A file of version 3, with `data` bytes of zeros behind its front.
struct MadeFile {
  std::uint64_t tensors = 0, keys = 0;
  std::string said = {};
  std::size_t data = 0;
  std::string bytes() const {
    std::string out = "GGUF" + raw(std::uint32_t{3}) + raw(tensors) + raw(keys) + said;
    out.resize((out.size() + 31) / 32 * 32 + data);
    return out;
  }
};

inline exchange::gguf::Header header_of(const std::string& bytes) {
  return exchange::gguf::read_header(std::as_bytes(std::span(bytes)), "FILE");
}

}  // namespace weft::testing
