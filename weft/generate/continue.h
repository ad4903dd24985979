// Text from a model, plainly: a token at a time, after one reading of the prompt.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/generate/choose.h"
#include "weft/generate/logits.h"
#include "weft/text/tokenizer.h"

namespace weft {

/// A model and its words. Every rank that it is cut over takes part and draws the same tokens.
struct Speaker {
  ModelHere model;
  const Tokenizer& tokenizer;
};
struct Wish {
  std::string prompt;
  std::int64_t tokens = 64;
  Choice choice;
  std::uint64_t seed = 1234;
  std::vector<std::int32_t> ends;  // ids that end a text beside the tokenizer's own
  // Of an encoder and a decoder: what the one's text has to end in, what the other's starts with (unset: as
  // the tokenizer says).
  std::optional<std::int32_t> closes = {}, start = {};
};
/// Refuses ids for which the model has no words.
void check_known(std::span<const std::int32_t> ids, const ModelConfig& config);

/// The prompt's continuation, or where an encoder reads the prompt, the decoder's text; stops early at the
/// end of a document. tell, if given, gets each piece of text as it comes; characters that are spread over
/// tokens come whole.
std::string continue_text(const Speaker& speaker, const Wish& wish,
                          const std::function<void(const std::string& piece)>& tell = {});

}  // namespace weft
