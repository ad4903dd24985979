// DeepSpeed's configuration: whatever the bytes are, they are read or refused with an Error, and what was
// read is in the fields.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "weft/base/error.h"
#include "weft/cli/dialect/deepspeed.h"
#include "weft/train/describe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  TrainConfig config;
  Fields fields(config);
  try {
    const auto said = cli::dialect::read_deepspeed(
        fields, std::string_view(reinterpret_cast<const char*>(data), size), "f");
    for (const cli::dialect::KeySaid& key : said.keys)
      if (!key.never && fields.at(key.field).write() != key.words) std::abort();
  } catch (const Error&) {  // a person's mistake, said as such
  }
  return 0;
}
