// What a rank brings to a checkpoint: memory under a global name, and which boxes of the tensor it holds.
#pragma once

#include <string>
#include <vector>

#include "weft/checkpoint/box.h"
#include "weft/mesh/shard.h"
#include "weft/tensor/tensor.h"

namespace weft::checkpoint {

/// The tensor's memory holds the pieces' elements; memory outside of all pieces is padding, which is neither
/// written nor read.
struct Named {
  std::string name;
  Tensor tensor;
  std::vector<Piece> pieces;
};

inline Box box_of(const Piece& piece) { return {piece.where.offset, piece.where.local}; }

/// Fails with Kind::internal unless the elements lie in order and the pieces fit memory and global tensor.
void check(const Named& named);

/// The whole tensor as its own only box.
Named whole(std::string name, const Tensor& tensor);

}  // namespace weft::checkpoint
