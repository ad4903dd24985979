// SentencePiece models, as Megatron reads them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/tokenizer.h"

namespace weft {

struct SentencePieceOptions {
  /// Special tokens may be added behind the pieces; text is cut at them first.
  bool legacy = false;
  bool ignore_extra_whitespaces = true;
  std::vector<std::string> special;
};
/// `model` is the content of a .model file.
[[nodiscard]] std::unique_ptr<Tokenizer> make_sentencepiece(std::string_view model,
                                                            const SentencePieceOptions& options);

}  // namespace weft
