#include "weft/exchange/fp8_blocks.h"

#include <array>

#include "weft/base/half.h"
#include "weft/base/number.h"
#include "weft/model/hub_settings.h"

namespace weft::exchange {

namespace {

constexpr std::array<float, 256> numbers = [] {
  std::array<float, 256> out{};
  for (unsigned code = 0; code < out.size(); ++code) out[code] = f8e4m3::from_bits(std::uint8_t(code));
  return out;
}();

}  // namespace

Shape CodeBlocks::scales_of(const Shape& matrix) const {
  return {divide_up(matrix[0], rows), divide_up(matrix[1], columns)};
}

std::optional<CodeBlocks> read_code_blocks(HubSettings& outer) {
  const HubSettings::Json* said = outer.find("quantization_config");
  if (said == nullptr) return std::nullopt;
  const auto method = said->find("quant_method");
  if (!said->is_object() || method == said->end() || *method != "fp8")
    outer.refuse("quantization_config", "weft reads fp8 in blocks, and mxfp4 of a gpt_oss");
  HubSettings s(*said, outer.who() + ": quantization_config");
  s.must_be("fmt", "e4m3");
  CodeBlocks out;
  if (const HubSettings::Json* size = s.find("weight_block_size")) {
    const auto good = [](const HubSettings::Json& n) {
      return n.is_number_unsigned() && n > 0U && n < 65536U;
    };
    if (!size->is_array() || size->size() != 2 || !good((*size)[0]) || !good((*size)[1]))
      s.refuse("weight_block_size", "expected two numbers from 1 to 65535");
    out = {(*size)[0].get<std::int64_t>(), (*size)[1].get<std::int64_t>()};
  } else if (s.says("weight_block_size")) {
    s.refuse("weight_block_size", "and weft reads scales of blocks, none of whole tensors");
  }
  return out;
}

void unpack_codes(const CodedRow& row, std::int64_t column, std::int64_t block_columns, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::int64_t at = column + std::int64_t(i);
    const auto code = std::to_integer<std::size_t>(row.codes[std::size_t(at)]);
    to[i] = numbers[code] * row.scales[std::size_t(at / block_columns)];
  }
}

}  // namespace weft::exchange
