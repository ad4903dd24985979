// Configurations and flags from anyone: whatever the bytes are, they are read or refused with an Error, and
// what was read is written back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"

namespace {

struct Inner {
  double rate = 0.1;
  std::vector<std::int64_t> sizes;
};
struct Config {
  bool loud = false;
  int layers = 2;
  std::optional<double> clip;
  std::string name = "x";
  Inner inner;
};

template <class Visitor>
void describe(Visitor& v, Inner& c) {
  v("rate", c.rate, "a number");
  v("sizes", c.sizes, "a list");
}
template <class Visitor>
void describe(Visitor& v, Config& c) {
  v("loud", c.loud, "a switch");
  v("layers", c.layers, "a whole number");
  v("clip", c.clip, "a number or none");
  v("name", c.name, "a word");
  v.group("inner", c.inner);
}

// What JSON cannot write (a rate that is not finite) is out of the round trip's reach.
void must_come_back(weft::Fields& fields) {
  std::string written;
  try {
    written = weft::to_json(fields);
    Config again;
    weft::Fields copy(again);
    weft::from_json(copy, written, weft::Origin::file);
    if (weft::to_json(copy) != written) std::abort();
  } catch (const weft::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  Config config;
  weft::Fields fields(config);
  const std::string_view rest = input.substr(1);
  try {
    if (input[0] == 'j') {
      weft::from_json(fields, rest, weft::Origin::file);
    } else if (input[0] == 'y') {
      weft::from_yaml(fields, std::string(rest), weft::Origin::file);
    } else {
      const auto words = weft::split(rest, '\n');
      (void)weft::read_flags(fields, words);
    }
    must_come_back(fields);
  } catch (const weft::Error&) {
  }
  return 0;
}
