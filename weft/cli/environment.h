// What a launcher's environment variables say. Read here and in launch/ only.
#pragma once

#include <optional>

namespace weft::cli {

struct Launched {
  int world = 0;  // 0: no launcher
  int rank = 0;
};
/// WORLD_SIZE and RANK, as torchrun sets them.
Launched launched_by_environment();

}  // namespace weft::cli
