// What travels between layers and between pipeline stages: a few streams, each with a name.
#pragma once

#include <array>
#include <cstdint>

#include "weft/tensor/tensor.h"

namespace weft {

enum class Stream : std::uint8_t {
  hidden,  // what every layer reads and adds to
  memory,  // an encoder's output, which every layer of a decoder looks at
};
inline constexpr std::array all_streams{Stream::hidden, Stream::memory};

/// Empty where a stream does not flow here. Backward, the same names hold gradients: a layer that only looked
/// at a stream adds to its gradient and hands it on.
struct Flow {
  Tensor hidden;  // [s (/tp), b, h]
  Tensor memory;  // [s of the encoder (/tp), b, h]

  Tensor& operator[](Stream stream) { return stream == Stream::hidden ? hidden : memory; }
  const Tensor& operator[](Stream stream) const { return stream == Stream::hidden ? hidden : memory; }
};

}  // namespace weft
