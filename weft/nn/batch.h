// One microbatch as layers read it: tensors on the rank's device.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

/// Sequence first, like everything between layers. s counts the steps held here: a context-parallel rank
/// holds its own part of every sequence.
struct Batch {
  Tensor tokens;     // i32 [s, b]
  Tensor targets;    // i32 [s, b]; any id where the mask is zero
  Tensor mask;       // f32 [s, b]; 1 where a token counts in the loss
  Tensor places;     // i32 [s]: the global place in the sequence of every step held here
  Tensor positions;  // i32 [s, b]: position ids, which start again at a document where that is asked for
  Tensor segments;   // i32 [b, s]: documents that do not see each other; empty where all see all
  Tensor samples;    // i64 [b]: the global number of every sample, which addresses its random numbers
  bool restarted = false;  // positions differ from places
};

}  // namespace weft
