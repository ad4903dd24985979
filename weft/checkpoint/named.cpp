// The door of save and load: what does not fit together is refused before a byte moves.
#include "weft/checkpoint/named.h"

#include <utility>

#include "weft/base/error.h"

namespace weft::checkpoint {

void check(const Named& named) {
  if (named.pieces.empty()) return;
  const Tensor& tensor = named.tensor;
  if (!tensor) fail(Kind::internal, "checkpoint: ", named.name, " has no memory");
  if (!tensor.device().holds_numbers())
    fail(Kind::usage, "checkpoint: ", named.name, " lies on ", tensor.device().name(),
         ", which holds no numbers to save or load");
  if (!tensor.contiguous())
    fail(Kind::internal, "checkpoint: ", named.name, " ", tensor.shape(), " does not lie in order");
  for (const Piece& piece : named.pieces) {
    if (!fits(box_of(piece), piece.where.global)) {
      fail(Kind::internal, "checkpoint: ", named.name, ": a box ", piece.where.local, " at ",
           piece.where.offset, " is not within ", piece.where.global);
    }
    if (piece.where.global != named.pieces.front().where.global) {
      fail(Kind::internal, "checkpoint: ", named.name, " is said to be ", named.pieces.front().where.global,
           " and ", piece.where.global);
    }
    if (piece.at < 0 || piece.at > tensor.elements() - piece.where.local.elements()) {
      fail(Kind::internal, "checkpoint: ", named.name, ": a box ", piece.where.local, " from element ",
           piece.at, " does not fit the ", tensor.elements(), " elements of its memory");
    }
  }
}

Named whole(std::string name, const Tensor& tensor) {
  const Shape& full = tensor.shape();
  Dims zero;
  for (int i = 0; i < full.rank(); ++i) zero.push_back(0);
  return {std::move(name), tensor, {Piece{Shard{full, Shape(zero), full}, 0}}};
}

}  // namespace weft::checkpoint
