// Any bytes as a JSON line: texts, or a sentence that says what is wrong; and where simdjson reads, the way
// that Python goes gives the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/error.h"
#include "weft/data/json_texts.h"
#include "weft/data/python_json.h"
#include "weft/data/sentences.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::data;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    JsonTexts reader({"text"});
    const auto& texts = reader.read(line)[0];
    for (const std::string_view text : texts) sentences_of(text);
    const auto again = texts_as_python_reads(line, {"text"})[0];
    if (!std::equal(texts.begin(), texts.end(), again.begin(), again.end())) __builtin_trap();
  } catch (const weft::Error& e) {
    if (e.kind() != weft::Kind::data) __builtin_trap();
  }
  sentences_of(line, Newlines::kept);
  return 0;
}
