// Small models whose norms stand elsewhere, or whose scores are others.
#pragma once

#include "tests/support/tiny.h"

namespace weft::testing {

/// As Gemma 3 is built, but for gains: norms around attention and MLPs, and of each head without one, and
/// windows that turn otherwise.
inline ModelConfig tiny_gemma() {
  ModelConfig config = tiny_llama();
  config.norm_places = NormPlaces::around;
  config.norm_centered_gain = config.qk_norm_plain = true;
  config.activation = Activation::gelu;
  config.window = 3;
  config.window_full_every = 2;
  config.rotary.window_base = 50;
  config.rotary.scaling = RotaryScaling::linear;
  config.rotary.factor = 4;
  config.residual_multiplier = 0.7;
  complete(config);
  return config;
}

/// As OLMo 2 is built: norms of what attention and MLPs give, and of all heads together.
inline ModelConfig tiny_olmo() {
  ModelConfig config = tiny_llama();
  config.norm_places = NormPlaces::behind;
  config.qk_norm_whole = true;
  complete(config);
  return config;
}

/// As GPT-NeoX is built: attention and MLPs beside each other, each behind a norm of its own.
inline ModelConfig tiny_neox() {
  ModelConfig config = tiny_gpt2();
  config.positions = Positions::rotary;
  config.rotary.percent = 0.5;
  config.parallel_sublayers = ParallelSublayers::own_norms;
  config.tied_output = false;
  complete(config);
  return config;
}

/// As Command-R is built: both behind one norm.
inline ModelConfig tiny_command() {
  ModelConfig config = tiny_llama();
  config.norm = NormKind::layer;
  config.norm_bias = false;
  config.parallel_sublayers = ParallelSublayers::one_norm;
  config.rotary.interleaved = true;
  config.output_multiplier = 0.5;
  complete(config);
  return config;
}

/// As Command-R+ is built: each head's queries and keys are normed by gains of its own.
inline ModelConfig tiny_command_plus() {
  ModelConfig config = tiny_command();
  config.qk_norm_each = true;
  complete(config);
  return config;
}

/// As OLMo 1 is built: norms with nothing to learn, limited queries, keys and values, and as there may be,
/// biases of attention alone.
inline ModelConfig tiny_bare() {
  ModelConfig config = tiny_llama();
  config.norm = NormKind::layer;
  config.norm_gain = config.mlp_bias = false;
  config.linear_bias = config.qkv_bias = true;
  config.qkv_limit = 1;
  complete(config);
  return config;
}

/// As Hunyuan is built: queries and keys are normed behind turning.
inline ModelConfig tiny_turned() {
  ModelConfig config = tiny_llama();
  config.qk_norm = config.qk_norm_turned = true;
  complete(config);
  return config;
}

/// As Llama 4 is built: experts read rows that are multiplied by their weights, beside a shared one; every
/// other layer turns nothing, and has no norms of heads.
inline ModelConfig tiny_weighed() {
  ModelConfig config = tiny_mixture();
  config.rotary.skip_every = 2;
  config.qk_norm_plain = config.qk_norm_turning = true;
  config.experts.weigh_input = true;
  complete(config);
  return config;
}

/// As Gemma 2 is built: scores and logits have caps.
inline ModelConfig tiny_capped() {
  ModelConfig config = tiny_gemma();
  config.qk_norm_plain = false;
  config.rotary.window_base.reset();
  config.scores.cap = 0.4;
  config.output_cap = 0.7;
  complete(config);
  return config;
}

/// As Llama 4 is built for long texts: layers that turn see chunks, and queries of the others grow.
inline ModelConfig tiny_chunks() {
  ModelConfig config = tiny_llama();
  config.rotary.skip_every = config.window_full_every = 2;
  config.scores.chunk = 3;
  config.scores.growth_every = 2;
  config.scores.growth = 0.8;
  config.qk_norm_plain = config.qk_norm_turning = true;
  complete(config);
  return config;
}

/// As BLOOM is built: scores fall with distances, and embeddings have a norm. Slopes are multiplied as in
/// Falcon, and a layer looks through a window, as in neither.
inline ModelConfig tiny_falling() {
  ModelConfig config = tiny_gpt2();
  config.positions = Positions::alibi;
  config.alibi = {.power = 2, .scaled = true};
  config.embedding_norm = true;
  config.window = 4;
  config.window_full_every = 2;
  complete(config);
  return config;
}

/// The queries of all layers do, with the angles of those that turn.
inline ModelConfig tiny_grown() {
  ModelConfig m = tiny_chunks();
  m.scores.growth_of = QueryGrowth::all;
  return m;
}

}  // namespace weft::testing
