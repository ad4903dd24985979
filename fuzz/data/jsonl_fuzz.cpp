// Any bytes as a JSON line: texts, or a sentence that says what is wrong.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/error.h"
#include "weft/data/json_texts.h"
#include "weft/data/sentences.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::data;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    JsonTexts reader({"text"});
    for (const std::string_view text : reader.read(line)[0]) sentences_of(text);
  } catch (const weft::Error& e) {
    if (e.kind() != weft::Kind::data) __builtin_trap();
  }
  sentences_of(line, Newlines::kept);
  return 0;
}
