// Attention backward by tiles, of heads of 128 channels.
#include "weft/backend/cuda/attention_backward_tiles.h"

namespace weft::cuda {

template void attend_backward_by_tiles<128, 128>(Queue&, const AttentionBackward&);

}  // namespace weft::cuda
