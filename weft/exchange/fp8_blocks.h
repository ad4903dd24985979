// Weights of eight bits that share a scale by rectangles, as DeepSeek V3 and many since are published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "weft/tensor/shape.h"

namespace weft {
class HubSettings;
}

namespace weft::exchange {

/// How many rows and columns of a matrix share a scale; the last of either may be fewer.
struct CodeBlocks {
  std::int64_t rows = 128, columns = 128;
  /// Of a matrix [rows, columns], the shape of its scales.
  Shape scales_of(const Shape& matrix) const;
  bool operator==(const CodeBlocks&) const = default;
};

/// What "quantization_config" says, where it says anything. Fails with Kind::data on what is no such scheme.
std::optional<CodeBlocks> read_code_blocks(HubSettings& settings);

/// A row of a matrix of e4m3, from its column on: codes times `scales`, those of the blocks that the row is
/// in.
struct CodedRow {
  std::span<const std::byte> codes;
  std::span<const float> scales;
};
void unpack_codes(const CodedRow& row, std::int64_t column, std::int64_t block_columns, std::span<float> to);

}  // namespace weft::exchange
