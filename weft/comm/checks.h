// What every communicator asks of the tensors it is given.
#pragma once

#include "weft/base/error.h"
#include "weft/tensor/tensor.h"

namespace weft {

inline void require_contiguous(const char* word, const Tensor& x) {
  if (!x.contiguous())
    fail(Kind::shape, word, ": ", x.shape(), " with strides ", x.strides(),
         " has gaps; it must be contiguous");
}

/// `ranks` shards are the full tensor.
inline void require_parts(const char* word, const Tensor& full, const Tensor& shard, int ranks) {
  require_contiguous(word, full);
  require_contiguous(word, shard);
  if (full.elements() != shard.elements() * ranks || full.dtype() != shard.dtype())
    fail(Kind::shape, word, ": ", ranks, " shards of ", shard.shape(), " ", shard.dtype(), " are not ",
         full.shape(), " ", full.dtype());
}

}  // namespace weft
