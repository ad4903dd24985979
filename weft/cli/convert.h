// weft checkpoint convert.
#pragma once

#include "weft/cli/verb.h"

namespace weft::cli {

int convert_checkpoint(Args args);
[[nodiscard]] Topic convert_topic();

}  // namespace weft::cli
