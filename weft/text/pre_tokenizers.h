// Pre-tokenizers of tokenizer.json: they cut words and may rewrite them.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/split.h"

namespace weft {

/// A piece of text that the model will encode. `head` bytes at its front come from the first character of the
/// whole text, which a normalizer may have made several of; 0: the piece does not begin the text.
struct Word {
  std::string text;
  std::size_t head = 0;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(std::vector<Word>& words) const = 0;
};

/// What becomes of a match: a piece of its own, nothing, part of a neighbor, or one piece with the matches
/// beside it.
enum class Behavior { isolated, removed, with_previous, with_next, contiguous };

/// The pieces of a text of `size` bytes around `matches`; `invert` takes what lies between for the matches.
[[nodiscard]] std::vector<ByteRange> cut(std::size_t size, const std::vector<ByteRange>& matches,
                                         Behavior behavior, bool invert);

/// White space falls away, punctuation stands alone.
[[nodiscard]] std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();

/// "pre_tokenizer" of a tokenizer.json; null for null.
[[nodiscard]] std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& json);

}  // namespace weft
