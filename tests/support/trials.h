// What a test program has found out about its processor's products.
#pragma once

#include <memory>

#include "weft/backend/open.h"

namespace weft::testing {

/// One for all devices of a test program, as one for all ranks of a process.
inline std::shared_ptr<ProductTrials> trials() {
  static const std::shared_ptr<ProductTrials> one = new_trials();
  return one;
}

}  // namespace weft::testing
