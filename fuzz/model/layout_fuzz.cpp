// Layouts of a pipeline ("Et*3|(tt|)*2tL") from anybody. The first character says how many layers there are
// ("a" one, "b" two, ...), the second how many ranks; the rest is read or refused with an Error, and every
// layer of what was read stands in one stage.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/model/partition.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.size() < 3) return 0;
  const int layers = input[0] & 31, ranks = std::max(input[1] & 7, 1);
  try {
    int next = 0;
    for (const auto& part :
         weft::cut_stages(layers, {.ranks = ranks, .layout = std::string(input.substr(2))})) {
      if (part.first_layer != next || part.layers < 0) std::abort();
      next += part.layers;
    }
    if (next != layers) std::abort();
  } catch (const weft::Error&) {
  }
  return 0;
}
