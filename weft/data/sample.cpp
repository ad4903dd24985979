#include "weft/data/sample.h"

namespace weft::data {

std::string_view name(Field field) {
  constexpr std::array<std::string_view, num_fields> names = {
      // "segments" is what `weft data sample --json` has always called documents.
      "tokens",         "labels",       "loss_mask",    "positions",      "segments", "token_types",
      "encoder_tokens", "encoder_mask", "decoder_mask", "sentence_order", "truncated"};
  return names[static_cast<std::size_t>(field)];
}

}  // namespace weft::data
