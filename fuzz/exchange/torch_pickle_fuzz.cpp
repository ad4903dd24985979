// Pickles from anyone: read or refused with Kind::data, never run, and no deeper or larger than was promised.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "fuzz/exchange/torch_walk.h"
#include "weft/base/error.h"
#include "weft/exchange/torch/unpickle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto value = weft::exchange::torch::unpickled(std::as_bytes(std::span(data, size)), "fuzz");
    // A pickle that stands alone has no tensors.
    weft::fuzz::walk(value, [](const auto&) { std::abort(); });
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data) std::abort();
  }
  return 0;
}
