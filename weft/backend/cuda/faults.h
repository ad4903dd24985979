// Indices that lie in tensors are read where the host does not look, so what is wrong with one is noted there
// and said at the next wait: by copies to the host and by synchronize().
#pragma once

#include <cstdint>

#include "weft/backend/cuda/runtime.h"

namespace weft::cuda {

enum class Index : std::uint8_t {
  none,
  rope,
  gather_rows,
  scatter_add_rows,
  route_backward,
  count_experts,
  plan_rows
};

/// One word, written whole: which index, its value, and where it stands. 0: none.
using FaultWord = std::uint64_t;
constexpr FaultWord fault_of(Index which, std::int64_t at, std::int64_t value) {
  return FaultWord(which) << 56 | (FaultWord(at) & 0xFFFFFFU) << 32 | std::uint32_t(value);
}

class Faults {
 public:
  Faults();
  /// Where kernels write.
  FaultWord* word() const { return reinterpret_cast<FaultWord*>(page_.data()); }
  /// Fails with Kind::shape where there was a fault, and forgets it. The stream must have been waited for.
  void say();

 private:
  Pinned page_{sizeof(FaultWord)};
};

}  // namespace weft::cuda
