// Both forms of tiktoken's vocabularies from anybody.
#include "fuzz/text/use.h"
#include "weft/text/byte_level.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  weft::TiktokenOptions options;
  weft::open_and_use([&] { return weft::make_tiktoken_ranks(file, options); }, weft::sample);
  options.vocabulary = 12;
  options.num_special = 8;
  weft::open_and_use([&] { return weft::make_tiktoken_json(file, options); }, weft::sample);
  return 0;
}
