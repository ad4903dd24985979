// Where the random words of each row of [s, b, h] are.
#pragma once

#include <span>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/loops.h"
#include "weft/tensor/args.h"

namespace weft::fast {

class DropRows {
 public:
  /// room: for a Draw each row of the batch.
  DropRows(const DropoutArgs& how, Scratch& room);
  /// line = step * (size of the batch) + row of the batch
  DropRow row(std::int64_t line) const;

 private:
  std::uint32_t below_;
  float scale_;
  std::int64_t width_, channel_;
  std::span<const Draw> draws_;  // one for each row of the batch
  std::span<const std::int32_t> positions_;
};

}  // namespace weft::fast
