// The front of a GGUF file (version 3, little endian): what it says, and where its tensors lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/exchange/gguf/blocks.h"
#include "weft/exchange/gguf/values.h"

namespace weft::exchange::gguf {

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> sizes;  // the innermost first: a weight [out, in] is {in, out}
  NumberType type = NumberType::f32;
  std::int64_t at = 0, bytes = 0;  // in the file

  std::int64_t width() const { return sizes.empty() ? 1 : sizes.front(); }
  std::int64_t elements() const;
};

struct Header {
  Values values;
  std::vector<StoredTensor> tensors;
};

inline constexpr std::int64_t usual_alignment = 32;
inline constexpr std::string_view alignment_key = "general.alignment";

/// Whether bytes begin as a GGUF file does.
bool begins_as_gguf(std::span<const std::byte> file);

/// Of a whole file. Fails with Kind::data, naming `who` and what was found, on what is no such file, reaches
/// beyond its end or overlaps, and on types of numbers that weft does not read.
Header read_header(std::span<const std::byte> file, const std::string& who);

/// The bytes in front of the tensors, whose places are filled in: they follow each other, aligned.
std::string header_bytes(const Values& values, std::vector<StoredTensor>& tensors);

}  // namespace weft::exchange::gguf
