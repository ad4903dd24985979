// All weights of a rank and what training keeps beside them, in few flat blocks: one pass over memory updates
// thousands of parameters.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/nn/linear.h"
#include "weft/nn/parameter.h"

namespace weft {

/// Parameters that are treated alike stand in one block.
struct WeightKind {
  bool decays = true;
  bool at_the_ends = false;  // embedding or output: a learning rate of their own may apply
  bool counted = true;       // this rank's copy is the one that norms count
  auto operator<=>(const WeightKind&) const = default;
};

/// One parameter's place in a block, counted in elements.
struct WeightSlot {
  Parameter* parameter;
  std::int64_t at;
};

/// Contiguous memory of all parameters of one kind. Between parameters lie zeros, up to the next 64 bytes.
struct WeightBlock {
  WeightKind kind;
  std::vector<WeightSlot> slots;
  std::int64_t elements = 0;
  Tensor values;  // what layers read: f32, bf16 or f16
  Tensor master;  // f32; the values themselves where those are f32
  Tensor grads;   // f32; empty where nothing is trained
};

class Weights {
 public:
  enum class For : std::uint8_t { training, reading };
  /// Gathers what `each` visits, makes the memory, and binds every parameter to its part.
  Weights(const std::function<void(const VisitParameter&)>& each, Device& device, Dtype compute, For purpose);
  /// Fills masters by each parameter's init; the same numbers under every layout.
  void initialize(std::uint64_t seed);
  void zero_grads();
  /// Layers see what the masters hold now: after they were filled or loaded. An update does this itself.
  void publish();
  std::vector<WeightBlock>& blocks() { return blocks_; }
  const std::vector<WeightBlock>& blocks() const { return blocks_; }
  /// The part of a block-wide tensor (master, grads, a moment) that belongs to a parameter, in its shape.
  static Tensor part(const Tensor& flat, const WeightSlot& slot);
  Device& device() const { return device_; }

 private:
  void place(Parameter& parameter);
  void allocate(WeightBlock& block, Dtype compute, For purpose);
  Device& device_;
  std::vector<WeightBlock> blocks_;
};

}  // namespace weft
