// StateConfig: layers that remember as a state space does (Mamba-2), and HybridConfig: layers that are one
// thing each.
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"
#include "weft/nn/memory_shape.h"
#include "weft/tensor/args.h"

namespace weft {

/// Heads stand in groups that read and write along the same channels.
struct StateConfig {
  int heads = 0;  // each with a memory of channels by head_channels; 0: twice as wide together as the model
  int groups = 8;
  std::int64_t channels = 128;      // of what is read and written by
  std::int64_t head_channels = 64;  // of a value
  int taps = 4;                     // steps that filters see
  double norm_epsilon = 1e-5;       // of the norm before the output; Megatron's is this, whatever others are

  MemoryShape shape() const { return {groups, heads / groups, channels, head_channels, 1}; }
};

template <class Visitor>
void describe(Visitor& v, StateConfig& c) {
  v("heads", c.heads, OnResume::model,
    "state spaces: heads, each with a memory (0: twice as wide together as the model)", legal::size_or_none);
  v("groups", c.groups, OnResume::model, "state spaces: groups of heads that read and write alike",
    legal::size);
  v("channels", c.channels, OnResume::model, "state spaces: channels of what a memory is read and written by",
    legal::from_to(1, most_delta_channels));
  v("head_channels", c.head_channels, OnResume::model, "state spaces: channels of a head's values",
    legal::size);
  v("taps", c.taps, OnResume::model, "state spaces: steps that filters see", legal::from_to(1, most_taps));
  v("norm_epsilon", c.norm_epsilon, OnResume::model, "state spaces: added to the variance in their norms",
    legal::positive);
}

/// A letter a layer: M a state space, G the gated delta rule, * attention, - an MLP, E experts. Each has a
/// norm and a residual of its own.
struct HybridConfig {
  std::string layers;  // empty: every layer attends, or remembers, and has an MLP, or experts
  std::string ahead;   // of a layer that guesses a further token: several, one behind the other
  bool on() const { return !layers.empty(); }
};

template <class Visitor>
void describe(Visitor& v, HybridConfig& c) {
  v("layers", c.layers, OnResume::model,
    "a letter a layer that is one thing: M a state space, G the gated delta rule, * attention, - an MLP, E "
    "experts (empty: two in each)");
  v("ahead", c.ahead, OnResume::model, "the same of what guesses a further token");
}

struct ModelConfig;
class ParameterList;
/// Fills in how many heads there are, and refuses what no layer can do.
void complete_state(ModelConfig& model);
void add_state(ParameterList& list, const ModelConfig& config, const std::string& name);

}  // namespace weft
