// Trains small models and looks what of that fell back on plain loops.
#include <vector>

#include "weft/backend/plain_calls.h"
#include "weft/cli/doctor.h"
#include "weft/cli/selftest.h"
#include "weft/model/kinds.h"
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

TrainConfig small_mixture() {
  TrainConfig c = small_llama();
  c.model.experts = {.count = 4, .ffn_hidden = 32, .shared_hidden = 32};
  c.model.experts.router.chosen = 2;
  return c;
}

/// Those of which GPTs say nothing.
std::vector<TrainConfig> small_encoders() {
  std::vector<TrainConfig> out;
  for (const ModelKind& kind : model_kinds()) {
    TrainConfig c = small_gpt();
    c.model.kind = kind.name;
    const Samples::Of reads = kind.samples(c.model).of;
    if (reads == Samples::Of::hidden_spans) c.model.decoder_sequence = 16;
    if (reads != Samples::Of::documents) out.push_back(std::move(c));
  }
  return out;
}

}  // namespace

Finding plain_loops() {
  PlainCalls calls;
  std::vector<TrainConfig> all = small_encoders();
  for (TrainConfig c : {small_gpt(), small_llama(), small_mixture()}) all.push_back(std::move(c));
  for (const TrainConfig& raw : all) {
    TrainConfig asked = raw;
    complete(asked, 1);
    TrainConfig small = shrunk(asked, raw);
    small.length.iterations = 1;
    (void)train_small(small, &calls);
  }
  return plain_loops(calls);
}

}  // namespace weft::cli
