// What every target does with a tokenizer it could open: encodes and decodes, and holds it to its own size.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>

#include "weft/base/error.h"
#include "weft/text/tokenizer.h"

namespace weft {

inline void open_and_use(const std::function<std::unique_ptr<Tokenizer>()>& open, std::string_view text) {
  try {
    const auto tokenizer = open();
    const auto ids = tokenizer->encode(text);
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= tokenizer->size()) std::abort();
      (void)tokenizer->token(id);
    }
    (void)tokenizer->decode(ids);
    (void)tokenizer->special("eod");
  } catch (const Error& error) {
    // Refusing is right; a contradiction of ours is not.
    if (error.kind() == Kind::internal) std::abort();
  }
}

inline constexpr std::string_view sample =
    "The <s>quick</s> brown f\xc3\xb6x [MASK] 123\n\n  aaab \xff\xe4\xb8\xad<|endoftext|>";

}  // namespace weft
