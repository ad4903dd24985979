// Models small enough to differentiate by hand, with weights, a batch, and one step of training them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/further.h"
#include "weft/backend/open.h"
#include "weft/base/random.h"
#include "weft/comm/solo.h"
#include "weft/model/kinds.h"
#include "weft/optim/weights.h"
#include "weft/tensor/host.h"

namespace weft::testing {

/// A GPT-2 with two layers; tests change what they are about.
inline ModelConfig tiny_gpt2() {
  ModelConfig config;
  config.layers = 2;
  config.hidden = 16;
  config.heads = 4;
  config.sequence = 8;
  config.max_positions = 8;
  config.vocabulary = 29;
  config.vocabulary_unit = 8;
  config.hidden_dropout = config.attention_dropout = 0;
  config.init.std = 0.2;  // large enough that every part shows in the loss
  complete(config);
  return config;
}

inline ModelConfig tiny_llama() {
  ModelConfig config = tiny_gpt2();
  config.groups = 2;
  config.positions = Positions::rotary;
  config.norm = NormKind::rms;
  config.activation = Activation::silu;
  config.gated = true;
  config.ffn_hidden = 24;
  config.linear_bias = config.qkv_bias = false;
  config.tied_output = false;
  return config;
}

/// The same with eight experts in every layer, of which three compute each token, beside a shared one.
inline ModelConfig tiny_mixture() {
  ModelConfig config = tiny_llama();
  config.experts.count = 8;
  config.experts.ffn_hidden = 16;
  config.experts.shared_hidden = 16;
  config.experts.shared_gate = true;
  config.experts.router = {.chosen = 3,
                           .score = RouterScore::sigmoid,
                           .groups = 4,
                           .groups_kept = 3,
                           .scaling = 1.5,
                           .expert_bias = true,
                           .balancing = {Balancing::aux_loss, Balancing::seq_aux_loss},
                           .coefficients = {0.02, 0.03},
                           .z_loss = 0.01};
  complete(config);
  return config;
}

/// As gpt-oss is built: sinks that learn, a window in every other layer, gates within a limit, and biases
/// everywhere, those of eight experts and their router too.
inline ModelConfig tiny_oss() {
  ModelConfig config = tiny_llama();
  config.sink = Sink::learned;
  config.window = 3;
  config.window_full_every = 2;
  config.activation = Activation::quick_gelu;
  config.gate_limit = 0.5;
  config.gate_offset = 1;
  config.linear_bias = config.qkv_bias = true;
  config.experts.count = 8;
  config.experts.ffn_hidden = 16;
  config.experts.router = {.chosen = 3, .balancing = {Balancing::seq_aux_loss}, .coefficients = {0.02}};
  config.rotary.scaling = RotaryScaling::yarn;
  config.rotary.factor = 4;
  config.rotary.original_positions = 4;
  config.rotary.beta_fast = 2;
  config.rotary.beta_slow = 0.1;
  config.rotary.whole_channels = false;
  complete(config);
  return config;
}

/// As Qwen3-Next is built: every other layer attends, with gates and norms of heads; the rest remember, each
/// key head for two value heads.
inline ModelConfig tiny_delta() {
  ModelConfig config = tiny_llama();
  config.qk_norm = config.norm_centered_gain = config.attention_gate = true;
  config.rotary.percent = 0.5;
  config.delta = {.on = true,
                  .attends_every = 2,
                  .key_heads = 4,
                  .value_heads = 8,
                  .key_channels = 6,
                  .value_channels = 5,
                  .taps = 3};
  complete(config);
  return config;
}

/// Layers that are one thing each: eight memories of a state space in four groups, and what the letters ask
/// for beside them.
inline ModelConfig tiny_hybrid(const std::string& letters) {
  ModelConfig config = tiny_llama();
  const ModelConfig mixture = tiny_mixture(), delta = tiny_delta();
  config.groups = config.heads;
  config.layers = int(letters.size());
  config.hybrid.layers = letters;
  if (letters.find('M') != std::string::npos)
    config.state = {.heads = 8, .groups = 4, .channels = 6, .head_channels = 5, .taps = 3};
  if (letters.find('E') != std::string::npos) {
    config.experts = mixture.experts;
    config.experts.layers.clear();
  }
  if (letters.find('G') != std::string::npos) {
    config.delta = delta.delta;
    config.delta.attends_every = 0;
    config.delta.layers.clear();
  }
  complete(config);
  return config;
}

/// A llama with latents, each behind a norm: heads of 6 + 4 channels, and values of 6.
inline ModelConfig tiny_latent() {
  ModelConfig config = tiny_llama();
  config.groups = 0;
  config.channels = 0;
  config.qk_norm = true;
  config.latent = {.on = true,
                   .query_rank = 8,
                   .rank = 12,
                   .plain_channels = 6,
                   .turned_channels = 4,
                   .value_channels = 6};
  complete(config);
  return config;
}

/// A GPT that guesses two further tokens, whose losses weigh as much as the next one's.
inline ModelConfig tiny_ahead(ModelConfig config) {
  config.ahead = {.depths = 2, .factor = 2};
  complete(config);
  return config;
}

/// A BERT with two layers, whose blocks add to what their norms read.
inline ModelConfig tiny_bert() {
  ModelConfig config = tiny_gpt2();
  config.kind = "bert";
  config.activation = Activation::gelu_erf;
  complete(config);
  return config;
}

/// A T5 with two layers in each stack.
inline ModelConfig tiny_t5() {
  ModelConfig config = tiny_gpt2();
  config.kind = "t5";
  config.sequence = config.max_positions = 16;
  config.decoder_sequence = 8;
  config.positions = Positions::relative;
  config.relative = {.buckets = 8, .farthest = 12};
  complete(config);
  return config;
}

/// Which samples of a job: `count` of them from `first` on in a step's global batch.
struct TinyRows {
  int step = 1;
  std::int64_t first = 0, count = 1;
};

/// Token i of a row.
inline std::int32_t tiny_token(const ModelConfig& config, const TinyRows& rows, std::int64_t i,
                               std::int64_t row) {
  const Draw draw({.seed = std::uint64_t(rows.step),
                   .purpose = Purpose::test,
                   .sample = std::uint64_t(rows.first + row)});
  return std::int32_t(draw.word(std::uint64_t(i)) % std::uint32_t(config.vocabulary));
}

/// Random tokens; targets are the next ones; the last position does not count.
inline Batch tiny_rows(Device& device, const ModelConfig& config, const TinyRows& rows) {
  const std::int64_t s = config.sequence;
  const std::int64_t b = rows.count;
  std::vector<std::int32_t> tokens, targets, places, positions;
  std::vector<float> mask;
  std::vector<std::int64_t> samples;
  const auto token = [&](std::int64_t i, std::int64_t row) { return tiny_token(config, rows, i, row); };
  for (std::int64_t i = 0; i < s; ++i) {
    places.push_back(std::int32_t(i));
    for (std::int64_t row = 0; row < b; ++row) {
      tokens.push_back(token(i, row));
      targets.push_back(token(i + 1, row));
      positions.push_back(std::int32_t(i));
      mask.push_back(i + 1 < s ? 1.F : 0.F);
    }
  }
  for (std::int64_t row = 0; row < b; ++row) samples.push_back(1000 * rows.step + rows.first + row);
  Batch batch;
  batch.text = {.tokens = from_host(device, {s, b}, tokens),
                .places = from_host(device, {s}, places),
                .positions = from_host(device, {s, b}, positions),
                .types = {},
                .segments = {}};
  batch.targets = from_host(device, {s, b}, targets);
  batch.mask = from_host(device, {s, b}, mask);
  batch.hold_samples(device, samples);
  look_ahead(batch, config.ahead.depths);
  return batch;
}

/// Hidden words once more, of four that a sample may have.
inline Guesses tiny_guesses(Device& device, const ModelConfig& config, const TinyRows& rows) {
  std::vector<std::int32_t> places, targets;
  std::vector<float> mask;
  for (const std::int64_t i : {std::int64_t{1}, std::int64_t{2}, config.sequence / 2, std::int64_t{0}})
    for (std::int64_t row = 0; row < rows.count; ++row) {
      places.push_back(std::int32_t(i * rows.count + row));
      targets.push_back(tiny_token(config, rows, i + 1, row));
      mask.push_back(i > 0 ? 1.F : 0.F);
    }
  const auto n = std::int64_t(places.size());
  return {from_host(device, {n}, places), from_host(device, {n}, targets), from_host(device, {n}, mask)};
}

/// The same as hidden words: three of every sample, two parts, the last two tokens of every other sample
/// padding.
inline Batch tiny_hidden_words(Device& device, const ModelConfig& config, const TinyRows& rows) {
  const std::int64_t s = config.sequence, b = rows.count;
  Batch batch = tiny_rows(device, config, rows);
  std::vector<std::int32_t> types, there(std::size_t(s * b), 0), order;
  std::vector<float> mask;
  for (std::int64_t i = 0; i < s; ++i)
    for (std::int64_t row = 0; row < b; ++row) {
      const bool padding = (rows.first + row) % 2 == 1 && i >= s - 2;
      types.push_back(!padding && i >= s / 2 ? 1 : 0);
      mask.push_back(i == 1 || i == 2 || i == s / 2 ? 1.F : 0.F);
      if (padding) there[std::size_t(row * s + i)] = -1;
    }
  for (std::int64_t row = 0; row < b; ++row)
    order.push_back(std::int32_t((rows.step + rows.first + row) % 3 == 0));
  batch.text.types = from_host(device, {s, b}, types);
  batch.text.segments = from_host(device, {b, s}, there);
  batch.mask = from_host(device, {s, b}, mask);
  batch.guesses = tiny_guesses(device, config, rows);
  batch.sentence_order = from_host(device, {b}, order);
  batch.sentence_mask = from_host(device, {b}, std::vector<float>(order.size(), 1));
  return batch;
}

/// The same with a text of its own for an encoder; both end in padding, more or less of it, but as many
/// tokens count in every sample.
inline Batch tiny_hidden_spans(Device& device, const ModelConfig& config, const TinyRows& rows) {
  ModelConfig text = config;
  text.sequence = config.decoder_sequence;
  Batch batch = tiny_rows(device, text, rows);
  const Batch source = tiny_rows(device, config, {rows.step + 1000, rows.first, rows.count});
  batch.source = source.text;
  const auto there = [&](std::int64_t s, std::int64_t most) {
    std::vector<std::int32_t> out;
    for (std::int64_t row = 0; row < rows.count; ++row)
      for (std::int64_t i = 0; i < s; ++i) out.push_back(i >= s - (rows.first + row) % most ? -1 : 0);
    return from_host(device, {rows.count, s}, out);
  };
  batch.text.segments = there(config.decoder_sequence, 3);
  batch.source.segments = there(config.sequence, 4);
  std::vector<float> mask;
  for (std::int64_t i = 0; i < config.decoder_sequence; ++i)
    for (std::int64_t row = 0; row < rows.count; ++row)
      mask.push_back(i < config.decoder_sequence - 2 ? 1.F : 0.F);
  batch.mask = from_host(device, {config.decoder_sequence, rows.count}, mask);
  return batch;
}

/// As the model's family reads them.
inline Batch tiny_samples(Device& device, const ModelConfig& config, const TinyRows& rows) {
  if (config.kind == "t5") return tiny_hidden_spans(device, config, rows);
  return config.kind == "bert" ? tiny_hidden_words(device, config, rows) : tiny_rows(device, config, rows);
}

inline Batch tiny_batch(Device& device, const ModelConfig& config, std::int64_t b) {
  return tiny_samples(device, config, {.step = 1, .first = 0, .count = b});
}

/// All of a model as one stage.
inline std::map<int, Stage> whole_model(const ModelConfig& config, Communicator& tp, Device& device) {
  std::map<int, Stage> stages;
  const ModelKind kind = kind_of(config);
  stages[0] = kind.build(config, kind.cut(config, {}).front(), {.tp = tp}, device);
  return stages;
}

/// A whole model on one rank, with its weights and gradients.
class TinyModel {
 public:
  explicit TinyModel(const ModelConfig& config, Device& device, std::uint64_t seed = 7)
      : stages_(whole_model(config, solo_, device)),
        weights_([this](const VisitParameter& visit) { stage().each_parameter(visit); }, device,
                 dtype_for(config.precision), Weights::For::training) {
    weights_.initialize(seed);
  }
  Stage& stage() { return stages_.at(0); }
  const std::map<int, Stage>& stages() const { return stages_; }
  Weights& weights() { return weights_; }

  /// The objective of one batch; adds its gradients.
  double train(const Batch& batch, float factor = 1, std::uint64_t step = 0) {
    return run(batch, {.seed = 5, .step = step, .training = true, .factors = alike(factor)});
  }
  /// The sums of its losses, by number, each of which weighs as the factors say; adds their gradients.
  std::vector<double> train(const Batch& batch, const LossFactors& factors) {
    (void)run(batch, {.seed = 5, .training = true, .factors = factors});
    std::vector<double> sums;
    for (const Measured& measured : pass_.losses()) {
      sums.resize(std::max(sums.size(), std::size_t(measured.loss) + 1));
      for (const double loss : numbers(measured.terms)) sums[std::size_t(measured.loss)] += loss;
    }
    return sums;
  }
  double evaluate(const Batch& batch) { return run(batch, {.training = false}); }
  /// The same dropout as train(), and no gradients.
  double objective(const Batch& batch, float factor = 1, std::uint64_t step = 0) {
    const StepPlace place{.seed = 5, .step = step, .training = true, .factors = alike(factor)};
    pass_.open(batch, place);
    pass_.forget(true);
    (void)stage().forward(pass_, {});
    return total(pass_) * factor;
  }

  std::map<std::string, std::vector<double>> grads() {
    std::map<std::string, std::vector<double>> out;
    stage().each_parameter([&](Parameter& p) { out[p.name] = numbers(p.grad.sum()); });
    return out;
  }

  static Dtype dtype_for(Precision precision) {
    return precision == Precision::f32 ? Dtype::f32 : precision == Precision::bf16 ? Dtype::bf16 : Dtype::f16;
  }

 private:
  static LossFactors alike(float factor) {
    LossFactors factors{.token = factor, .sample = factor, .pass = factor, .balance = factor};
    factors.ahead.fill(factor);
    return factors;
  }
  double run(const Batch& batch, const StepPlace& place) {
    pass_.open(batch, place);
    (void)stage().forward(pass_, {});
    const double loss = total(pass_) * place.factors.token;
    if (place.training) {
      (void)stage().backward(pass_, {});
      pass_.weight_grads().pay();
    }
    return loss;
  }
  static double total(const Pass& pass) {
    double sum = 0;
    for (const Measured& measured : pass.losses())
      for (const double loss : numbers(measured.terms)) sum += loss;
    return sum;
  }

  SoloCommunicator solo_;
  std::map<int, Stage> stages_;
  Weights weights_;
  Pass pass_;
};

}  // namespace weft::testing
