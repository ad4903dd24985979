// Words for the hidden places of a text, from a model that guesses such.
#pragma once

#include <string>
#include <vector>

#include "weft/generate/continue.h"

namespace weft {

struct Guess {
  std::int32_t id = 0;
  std::string token;  // as the vocabulary writes it
  double probability = 0;
};

struct Filled {
  std::string text;                        // with the likeliest word in every hidden place
  std::vector<std::vector<Guess>> hidden;  // by place: the likeliest words, falling
};

/// The prompt's [MASK]s, each by itself; `words` guesses for each. Puts what the tokenizer has for the two
/// ends of a text around it, unless they are there. Every rank that the model is cut over takes part.
Filled fill_hidden(const Speaker& speaker, const std::string& prompt, std::int64_t words);

}  // namespace weft
