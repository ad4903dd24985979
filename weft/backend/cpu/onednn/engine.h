// oneDNN's matrix products, or the answer that this build has none.
#pragma once

#include <memory>

#include "weft/backend/cpu/product/engine.h"

namespace weft {

/// Null in a build without oneDNN.
std::shared_ptr<product::Engine> open_onednn();
/// The same for bf16 only, asked for pieces so small that its own ways of cutting a product do not show. Null
/// in a build without oneDNN.
std::shared_ptr<product::Engine> open_onednn_in_pieces();
/// For groups of rows, of any size, in bf16. Null in a build without oneDNN and on a processor without AMX.
std::shared_ptr<product::Engine> open_onednn_in_blocks();

}  // namespace weft
