// SentencePiece models from anybody.
#include "fuzz/text/use.h"
#include "weft/text/sentencepiece.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view model(reinterpret_cast<const char*>(data), size);
  weft::open_and_use([&] { return weft::make_sentencepiece(model, {.special = {}}); }, weft::sample);
  return 0;
}
