// tokenizer.json from anybody.
#include "fuzz/text/use.h"
#include "weft/text/huggingface.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  weft::open_and_use(
      [&] { return weft::make_huggingface({.tokenizer = file, .config = {}, .special = {}}, {}); },
      weft::sample);
  return 0;
}
