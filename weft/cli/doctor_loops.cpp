// Trains small models and looks what of that fell back on plain loops.
#include "weft/backend/plain_calls.h"
#include "weft/cli/doctor.h"
#include "weft/cli/selftest.h"
#include "weft/train/validate.h"

namespace weft::cli {
namespace {

TrainConfig small_gpt() {
  TrainConfig c;
  c.model.layers = 2;
  c.model.hidden = 64;
  c.model.heads = 4;
  c.model.sequence = c.model.max_positions = 32;
  c.model.vocabulary = 250;
  c.batch.micro = 2;
  c.data.mock = true;
  c.length.iterations = 1;
  c.rate.peak = 1e-3;
  return c;
}

// As Llama is built: shared key heads, rotary positions, RMS norms, a gated MLP, and half the precision.
TrainConfig small_llama() {
  TrainConfig c = small_gpt();
  c.model.groups = 2;
  c.model.positions = Positions::rotary;
  c.model.norm = NormKind::rms;
  c.model.activation = Activation::silu;
  c.model.gated = true;
  c.model.linear_bias = c.model.qkv_bias = c.model.tied_output = false;
  c.model.precision = Precision::bf16;
  return c;
}

}  // namespace

Finding plain_loops() {
  PlainCalls calls;
  for (const TrainConfig& raw : {small_gpt(), small_llama()}) {
    TrainConfig asked = raw;
    complete(asked, 1);
    (void)train_small(shrunk(asked, raw), &calls);
  }
  return plain_loops(calls);
}

}  // namespace weft::cli
