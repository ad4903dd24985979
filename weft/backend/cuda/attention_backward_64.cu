// Attention backward by tiles, of heads of 64 channels.
#include "weft/backend/cuda/attention_backward_tiles.h"

namespace weft::cuda {

template void attend_backward_by_tiles<64, 64>(Queue&, const AttentionBackward&);

}  // namespace weft::cuda
