// Layers that are state spaces: what is there, and what cannot be.
#include <cmath>

#include "weft/base/error.h"
#include "weft/model/layer_parts.h"
#include "weft/model/parameters.h"

namespace weft {

void complete_state(ModelConfig& m) {
  StateConfig& s = m.state;
  if (parts_in_all(m, LayerPart::state) == 0) return;
  if (s.heads == 0) {
    if (2 * m.hidden % s.head_channels != 0)
      fail(Kind::usage, "model: twice the hidden size ", m.hidden,
           " is not a multiple of "
           "{model.state.head_channels} ",
           s.head_channels, ": say {model.state.heads}");
    s.heads = int(2 * m.hidden / s.head_channels);
  }
  if (s.heads % s.groups != 0)
    fail(Kind::usage, "model: {model.state.heads} ", s.heads, " is not a multiple of {model.state.groups} ",
         s.groups);
  if (m.mup.on)
    fail(Kind::usage, "model: layers that remember have no scale by width: leave {model.mup.on} out");
}

// Decays begin between e^-1 and e^-16 to the power of a step's time, and times between a thousandth and a
// tenth; filters as a convolution's weights do.
void add_state(ParameterList& list, const ModelConfig& c, const std::string& name) {
  const MemoryShape shape = c.state.shape();
  const std::int64_t in = shape.keys * shape.width(), values = shape.keys * shape.values();
  const Init filter{
      .how = Init::How::uniform, .value = 0, .spread = float(1 / std::sqrt(double(c.state.taps)))};
  add_matrix(list, name + ".in", {in, c.hidden, false}, matrix_init(c, in, c.hidden));
  list.add(name + ".filter", {shape.keys, shape.filtered(), c.state.taps}, filter);
  list.add(name + ".filter_bias", {shape.keys * shape.filtered()}, filter);
  list.add(name + ".speed", {c.state.heads},
           {.how = Init::How::log_of_uniform, .value = 8.5F, .spread = 7.5F});
  const double slow = std::log(0.001), fast = std::log(0.1);
  list.add(name + ".shift", {c.state.heads},
           {.how = Init::How::softplus_gives_exp_of_uniform,
            .value = float((slow + fast) / 2),
            .spread = float((fast - slow) / 2)});
  list.add(name + ".skip", {c.state.heads}, constant_init(1));
  list.add(name + ".norm.gain", {values}, constant_init(1));
  add_matrix(list, name + ".project", {c.hidden, values, c.linear_bias}, output_init(c, c.hidden, values));
}

}  // namespace weft
