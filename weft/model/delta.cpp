// Layers that remember: what is there, and what cannot be.
#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/model/parameters.h"

namespace weft {
namespace {

void fill_layers(ModelConfig& m) {
  DeltaConfig& d = m.delta;
  if (d.layers.empty() && d.attends_every == 0)
    fail(Kind::usage,
         "model: nothing says which layers remember and which attend: add {model.delta.attends_every}");
  if (d.layers.empty()) d.layers = all_but_every(d.attends_every, m.layers);
  if (std::ssize(d.layers) != m.layers)
    fail(Kind::usage, "model: ", d.layers.size(), " entries say which layers remember, but there are ",
         m.layers, " layers");
  if (d.layers_with() == 0)
    fail(Kind::usage, "model: no layer remembers, all attend: leave {model.delta.on} out");
}

}  // namespace

int DeltaConfig::layers_with() const {
  return on ? int(std::ranges::count_if(layers, [](int each) { return each != 0; })) : 0;
}

void complete_delta(ModelConfig& m) {
  const DeltaConfig& d = m.delta;
  if (!d.on) return;
  if (d.value_heads % d.key_heads != 0)
    fail(Kind::usage, "model: {model.delta.value_heads} ", d.value_heads,
         " is not a multiple of {model.delta.key_heads} ", d.key_heads);
  if (m.activation != Activation::silu)
    fail(Kind::usage,
         "model: filters and gates of layers that remember are silu, and {model.activation} is another");
  if (m.mup.on)
    fail(Kind::usage, "model: layers that remember have no scale by width: leave {model.mup.on} out");
  fill_layers(m);
}

// Decays begin between e^-1 and e^-16 to the power of softplus(1 + what a token says), filters as a
// convolution's weights do.
void add_delta(ParameterList& list, const ModelConfig& c, const std::string& name) {
  const DeltaConfig& d = c.delta;
  const MemoryShape shape = d.shape();
  const std::int64_t in = shape.keys * shape.width(), values = shape.keys * shape.values();
  const auto half_width = float(1 / std::sqrt(double(d.taps)));
  add_matrix(list, name + ".in", {in, c.hidden, false}, matrix_init(c, in, c.hidden));
  list.add(name + ".filter", {shape.keys, shape.filtered(), d.taps},
           {.how = Init::How::uniform, .value = 0, .spread = half_width});
  list.add(name + ".speed", {d.value_heads},
           {.how = Init::How::log_of_uniform, .value = 8.5F, .spread = 7.5F});
  list.add(name + ".shift", {d.value_heads}, constant_init(1));
  list.add(name + ".norm.gain", {d.value_channels}, constant_init(1));
  if (c.norm == NormKind::layer) list.add(name + ".norm.bias", {d.value_channels}, constant_init(0));
  add_matrix(list, name + ".project", {c.hidden, values, c.linear_bias}, output_init(c, c.hidden, values));
}

}  // namespace weft
