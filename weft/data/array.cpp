// Memory for long arrays, straight from the system.
#include "weft/data/array.h"

#include <sys/mman.h>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::data {

Pages::Pages(std::size_t bytes) {
  if (bytes == 0) return;
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    fail(Kind::device, "data: no memory for an index of ", human_bytes(static_cast<std::int64_t>(bytes)),
         "; {data.index=keyed} needs none");
  }
  // A wish: where the system has no large pages, small ones do.
  static_cast<void>(madvise(address, bytes, MADV_HUGEPAGE));
  address_ = address;
  bytes_ = bytes;
}

Pages::~Pages() {
  if (address_ != nullptr) munmap(address_, bytes_);
}

}  // namespace weft::data
