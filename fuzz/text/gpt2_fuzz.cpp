// vocab.json and merges.txt from anybody: the first line with a form feed at its end parts them.
#include "fuzz/text/use.h"
#include "weft/text/byte_level.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view both(reinterpret_cast<const char*>(data), size);
  const auto cut = std::min(both.find('\f'), both.size());
  const auto merges = both.substr(std::min(cut + 1, both.size()));
  weft::open_and_use([&] { return weft::make_gpt2(both.substr(0, cut), merges); }, weft::sample);
  return 0;
}
