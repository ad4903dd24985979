// The twin for builds without oneDNN: our own product computes everything.
#include "weft/backend/cpu/onednn/engine.h"

namespace weft {

std::shared_ptr<product::Engine> open_onednn() { return nullptr; }
std::shared_ptr<product::Engine> open_onednn_in_pieces() { return nullptr; }
std::shared_ptr<product::Engine> open_onednn_in_blocks() { return nullptr; }

}  // namespace weft
