// Base64 as tiktoken's files and tokenizer.json hold it.
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// `who` begins the message where a letter is none of base64's or the length is wrong.
[[nodiscard]] std::string base64_decoded(std::string_view letters, std::string_view who);

}  // namespace weft
