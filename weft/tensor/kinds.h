// The kinds of norms, activations and gates: words that kernels, layers and configurations share.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace weft {

enum class NormKind : std::uint8_t { layer, rms };

/// gelu is the tanh form, gelu_erf the exact one; quick_gelu is x * sigmoid(1.702 x). Gated layers read [gate
/// | up] and give f(gate) * up.
enum class Activation : std::uint8_t {
  identity,
  gelu,
  gelu_erf,
  quick_gelu,
  silu,
  relu,
  squared_relu,
  tanh,
  sigmoid
};

/// What a gated layer makes of its halves: f(gate) (up + offset). Neither half goes beyond the limit: gate is
/// at most that, up lies between it and its negative.
struct Gate {
  Activation f = Activation::silu;
  float limit = std::numeric_limits<float>::infinity();
  float offset = 0;
};

/// The words in the order of the enumerators: how flags, files and help spell them.
constexpr std::array<std::string_view, 2> words(NormKind) { return {"layer", "rms"}; }
constexpr std::array<std::string_view, 9> words(Activation) {
  return {"identity", "gelu", "gelu_erf", "quick_gelu", "silu", "relu", "squared_relu", "tanh", "sigmoid"};
}

}  // namespace weft
