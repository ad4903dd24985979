// What lies in the file of a directory's lock, from anyone: a holder that is written back as it was read, or
// none.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "weft/checkpoint/finite.h"
#include "weft/checkpoint/lock.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::checkpoint;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto holder = lock_holder(input)) {
    const std::string written = lock_text(*holder);
    const auto again = lock_holder(written);
    if (written.size() != lock_bytes || !again || lock_text(*again) != written) std::abort();
    if (again->process != holder->process || again->beat != holder->beat) std::abort();
  }
  const auto at = first_not_finite(std::as_bytes(std::span(input)), weft::Dtype::f16);
  if (at >= static_cast<std::int64_t>(size / 2)) std::abort();
  return 0;
}
