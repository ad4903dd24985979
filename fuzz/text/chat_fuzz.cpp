// Chat templates from anybody: read, and run over a conversation with little work allowed.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/text/chat.h"
#include "weft/text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::ordered_json;
  static const Json messages = Json::parse(
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "Zürich 🙂"}]},
          {"role": "assistant", "content": " a\n", "tool_calls": [{"name": "f", "arguments": {"x": [1, 2.5, null, true]}}]}])");
  static const Json variables =
      Json::parse(R"({"tools": [{"type": "function", "function": {"name": "f"}}]})");
  try {
    const weft::ChatTemplate chat({.jinja = std::string(reinterpret_cast<const char*>(data), size),
                                   .tokens = {{"bos_token", "<s>"}},
                                   .name = "t"});
    const weft::ChatText written =
        chat.write(messages, {.answer_next = true, .variables = &variables, .now = 0, .work = 1'000'000});
    if (!weft::unicode::valid(written.text)) std::abort();
  } catch (const weft::Error& error) {
    // Refusing is right; a contradiction of ours is not.
    if (error.kind() == weft::Kind::internal) std::abort();
  }
  return 0;
}
