// What travels between layers and between pipeline stages: a few streams, each with a name.
#pragma once

#include <array>
#include <cstdint>

#include "weft/tensor/tensor.h"

namespace weft {

enum class Stream : std::uint8_t {
  hidden,  // what every layer reads and adds to
  memory,  // an encoder's output, which every layer of a decoder looks at
  biases,  // of relative positions, which every layer of a stack adds to its scores
};
inline constexpr std::array all_streams{Stream::hidden, Stream::memory, Stream::biases};

/// Empty where a stream does not flow here. Backward, the same names hold gradients: a layer that only looked
/// at a stream adds to its gradient and hands it on.
struct Flow {
  Tensor hidden;  // [s (/tp), b, h]
  Tensor memory;  // [s of the encoder (/tp), b, h]
  Tensor biases;  // f32 [n/tp, distances], and its gradient too
  /// Backward, where hidden is f32 and the layer before reads its gradient with fewer bits: that, if somebody
  /// had it at hand. Who changes hidden leaves it out, and it stays in its stage.
  Tensor rounded = {};

  Tensor& operator[](Stream stream) {
    return stream == Stream::hidden ? hidden : stream == Stream::memory ? memory : biases;
  }
  const Tensor& operator[](Stream stream) const {
    return stream == Stream::hidden ? hidden : stream == Stream::memory ? memory : biases;
  }
};

}  // namespace weft
