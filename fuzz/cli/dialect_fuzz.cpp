// The small languages inside flags: layer patterns ("p([0]*3+[1]*5)") and batch schedules ("b0:768
// 250B:1536"). Whatever the bytes are, they are read or refused with an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/error.h"
#include "weft/cli/dialect/rows.h"
#include "weft/train/batch_size.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  try {
    if (input[0] == 'p')
      static_cast<void>(weft::cli::dialect::read_pattern(input.substr(1)));
    else
      static_cast<void>(weft::read_batch_steps(input.substr(1)));
  } catch (const weft::Error&) {
  }
  return 0;
}
