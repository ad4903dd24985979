// DeltaConfig: layers that remember by the gated delta rule where others attend, as Qwen3-Next has them.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"
#include "weft/nn/memory_shape.h"
#include "weft/tensor/args.h"

namespace weft {

/// Every key head serves as many value heads, each with a memory of key_channels by value_channels.
struct DeltaConfig {
  bool on = false;
  int attends_every = 0;    // fills `layers`: every n-th layer attends
  std::vector<int> layers;  // one 0 or 1 a layer: 1 remembers
  int key_heads = 16, value_heads = 32;
  std::int64_t key_channels = 128, value_channels = 128;
  int taps = 4;  // steps that filters of queries, keys and values see

  bool at(int layer) const { return on && layers[std::size_t(layer)] != 0; }
  /// Layers that remember.
  int layers_with() const;
  MemoryShape shape() const { return {key_heads, value_heads / key_heads, key_channels, value_channels}; }
};

template <class Visitor>
void describe(Visitor& v, DeltaConfig& c) {
  v("on", c.on, OnResume::model, "layers that remember by the gated delta rule where others attend");
  v("attends_every", c.attends_every, OnResume::model, "every n-th layer attends, others remember",
    legal::size_or_none);
  v("layers", c.layers, OnResume::model, "which layers remember (empty: by `attends_every`)",
    legal::fraction);
  v("key_heads", c.key_heads, OnResume::model, "gated delta rule: heads of queries and keys", legal::size);
  v("value_heads", c.value_heads, OnResume::model, "gated delta rule: heads of values, each with a memory",
    legal::size);
  v("key_channels", c.key_channels, OnResume::model, "gated delta rule: channels of a query and a key",
    legal::from_to(1, most_delta_channels));
  v("value_channels", c.value_channels, OnResume::model, "gated delta rule: channels of a value",
    legal::size);
  v("taps", c.taps, OnResume::model, "gated delta rule: steps that filters see",
    legal::from_to(1, most_taps));
}

struct ModelConfig;
class ParameterList;
/// Fills in which layers remember, and refuses what no layer can do.
void complete_delta(ModelConfig& model);
void add_delta(ParameterList& list, const ModelConfig& config, const std::string& name);

}  // namespace weft
