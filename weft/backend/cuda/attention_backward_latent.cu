// Attention backward by tiles, of latent heads: 192 channels, and values of 128.
#include "weft/backend/cuda/attention_backward_tiles.h"

namespace weft::cuda {

template void attend_backward_by_tiles<192, 128>(Queue&, const AttentionBackward&);

}  // namespace weft::cuda
