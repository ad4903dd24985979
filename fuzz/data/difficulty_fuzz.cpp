// Any bytes as an index of samples, and as a metric in one word: refused, or read to the end.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/base/error.h"
#include "weft/data/difficulty.h"
#include "weft/data/number_rows.h"

namespace {

void as_an_index(std::span<const std::byte> bytes) {
  using namespace weft::data;
  for (const std::int64_t bin_bytes : {0, 30}) {
    try {
      const NumberIndex index = parse_number_index(bytes, bin_bytes, "x.idx");
      for (std::size_t i = 0; i < index.lengths.size(); ++i)
        if (index.pointers[i] + index.lengths[i] * width(index.type) > bin_bytes) __builtin_trap();
    } catch (const weft::Error& e) {
      if (e.kind() != weft::Kind::data) __builtin_trap();
    }
  }
}

void as_a_metric(std::string_view word) {
  using namespace weft::data;
  std::string again;
  try {
    again = write_metric(read_metric(word));
  } catch (const weft::Error& e) {
    if (e.kind() != weft::Kind::usage) __builtin_trap();
    return;
  }
  if (write_metric(read_metric(again)) != again) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  as_an_index(std::as_bytes(std::span(data, size)));
  as_a_metric({reinterpret_cast<const char*>(data), size});
  return 0;
}
