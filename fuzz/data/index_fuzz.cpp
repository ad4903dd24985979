// Any bytes as an index of token files: refused, or walked to the end without touching what is not there.
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/error.h"
#include "weft/data/token_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::data;
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const Modes modes : {Modes::ignored, Modes::wanted}) {
    for (const std::int64_t bin_bytes : {0, 30}) {
      try {
        const TokenIndex index = parse_index(bytes, bin_bytes, "x.idx", modes);
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < index.lengths.size(); ++i) sum ^= index.lengths[i] ^ index.pointers[i];
        for (std::size_t i = 0; i < index.documents.size(); ++i) sum ^= index.documents[i];
        for (std::size_t i = 0; i < index.modes.size(); ++i) sum ^= index.modes[i];
        if (index.documents.size() == 0) __builtin_trap();
        asm volatile("" : : "r"(sum));
      } catch (const weft::Error& e) {
        if (e.kind() != weft::Kind::data) __builtin_trap();
      }
    }
  }
  return 0;
}
