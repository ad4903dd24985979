// Streams of torch.save from anyone: read or refused with Kind::data, and every tensor lies in the file. The
// seeds have no checksums, so that what is changed in them is not refused for that alone.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <span>

#include "fuzz/exchange/torch_walk.h"
#include "weft/base/error.h"
#include "weft/exchange/torch/archive.h"

namespace {

using namespace weft::exchange::torch;

// Each byte is read, for the sanitizer to see whose it is.
void look(const Archive& archive, const StoredTensor& tensor) {
  try {
    const auto bytes = archive.bytes(tensor);
    if (std::ssize(bytes) != tensor.elements() * tensor.width) std::abort();
    volatile unsigned sum = 0;
    for (const std::byte b : bytes) sum = sum + std::to_integer<unsigned>(b);
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Archive archive(std::as_bytes(std::span(data, size)), "fuzz");
    int left = 1000;  // a storage may stand in many tensors, each as large as the file
    weft::fuzz::walk(archive.value(), [&](const StoredTensor& tensor) {
      if (left-- > 0) look(archive, tensor);
    });
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data) std::abort();
  }
  return 0;
}
