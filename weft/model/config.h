// ModelConfig: what to build, as plain values; each field is listed once, in describe().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"
#include "weft/model/ahead_config.h"
#include "weft/model/alibi_config.h"
#include "weft/model/delta_config.h"
#include "weft/model/experts_config.h"
#include "weft/model/fp8_config.h"
#include "weft/model/latent_config.h"
#include "weft/model/recompute_config.h"
#include "weft/model/rotary_config.h"
#include "weft/model/scores_config.h"
#include "weft/model/state_config.h"
#include "weft/nn/layer_drop.h"
#include "weft/nn/token_drop.h"
#include "weft/tensor/kinds.h"

namespace weft {

/// What activations and multiplied weights are stored in; sums, masters and moments are f32 whatever this
/// says.
enum class Precision : std::uint8_t { f32, bf16, f16 };
enum class Positions : std::uint8_t { learned, rotary, none, relative, alibi };
/// What each head gives to no key: nothing, what a score of zero takes, or of a score that it learns.
enum class Sink : std::uint8_t { none, zero, learned };
/// Where the norms of a block stand: before what attention or an MLP reads, behind what it gives and before
/// that is added to what came in, or around it.
enum class NormPlaces : std::uint8_t { before, around, behind };
/// Whether attention and an MLP read the same and are added at once, each behind a norm of its own or both
/// behind one.
enum class ParallelSublayers : std::uint8_t { none, own_norms, one_norm };
enum class InitMethod : std::uint8_t { normal, xavier_uniform };

/// The words of an enum in the order of its enumerators: how flags, files and help spell them.
constexpr std::array<std::string_view, 3> words(Precision) { return {"f32", "bf16", "f16"}; }
constexpr std::array<std::string_view, 5> words(Positions) {
  return {"learned", "rotary", "none", "relative", "alibi"};
}
constexpr std::array<std::string_view, 3> words(Sink) { return {"none", "zero", "learned"}; }
constexpr std::array<std::string_view, 3> words(NormPlaces) { return {"before", "around", "behind"}; }
constexpr std::array<std::string_view, 3> words(ParallelSublayers) {
  return {"none", "own-norms", "one-norm"};
}
constexpr std::array<std::string_view, 2> words(InitMethod) { return {"normal", "xavier_uniform"}; }

/// Biases of scores by the distance of query and key: near distances have a bucket each, farther ones share
/// them, the more the farther, and all beyond `farthest` share the last.
struct RelativeConfig {
  int buckets = 32;
  int farthest = 128;
};

/// Initial weights. Output layers (attention projection, second MLP matrix) are scaled by 1/sqrt(2 layers) if
/// asked.
struct InitConfig {
  InitMethod method = InitMethod::normal;
  double std = 0.02;
  std::optional<double> embedding_std;  // unset: std
  bool scale_output_layers = true;
};

/// Maximal update parametrization: what was tuned on a narrow model holds for a wide one. Rates, epsilons and
/// initial weights of matrices follow the width, as many times as `base_hidden` goes into the hidden size.
struct MupConfig {
  bool on = false;
  std::int64_t base_hidden = 0;  // 0: hidden
  double embedding_multiplier = 1.0;
  double output_multiplier = 1.0;       // of the logits; 1: 1/width
  std::optional<double> base_channels;  // softmax_scale = sqrt(base_channels) / channels^power
  double attention_power = 1.0;
};

/// A decoder's shape. Zero in a size marked "0:" means it follows from the others; complete() fills it in.
struct ModelConfig {
  // No setting but a word of the command, and of a checkpoint's facts where it is not the first family.
  std::string kind = "gpt";

  int layers = 0;          // of the encoder where there is a decoder too
  int decoder_layers = 0;  // T5; 0: as many as the encoder has
  std::int64_t hidden = 0;
  std::int64_t ffn_hidden = 0;  // 0: 4·hidden, or floor(8·hidden/3/64)·64 if the activation is swiglu
  int heads = 0;
  int groups = 0;             // key/value heads; 0: as many as heads
  std::int64_t channels = 0;  // per head; 0: hidden / heads
  LatentConfig latent;        // where it is on, groups and channels follow from it
  DeltaConfig delta;          // of the layers that remember in place of attention
  StateConfig state;          // of the layers that are state spaces
  HybridConfig hybrid;        // layers that are one thing each

  std::int64_t sequence = 0;          // tokens in a training sample; T5: of the encoder
  std::int64_t decoder_sequence = 0;  // T5: tokens of the decoder
  std::int64_t max_positions = 0;     // rows of the learned position table
  std::int64_t vocabulary = 0;        // ids that may occur: softmax, norms and files see these only
  std::int64_t vocabulary_unit = 128;
  std::int64_t padded_vocabulary = 0;  // rows in storage; 0: vocabulary rounded up to vocabulary_unit

  Positions positions = Positions::learned;
  RotaryConfig rotary;
  RelativeConfig relative;
  AlibiConfig alibi;

  NormKind norm = NormKind::layer;
  double norm_epsilon = 1e-5;
  bool norm_centered_gain = false;  // the stored gain g is used as 1 + g
  bool norm_bias = true;            // of layer norms
  bool norm_gain = true;            // of hidden states; without, these norms have no biases either
  bool embedding_norm = false;      // GPT: of the embeddings, which are not dropped then
  NormPlaces norm_places = NormPlaces::before;
  ParallelSublayers parallel_sublayers = ParallelSublayers::none;
  bool qk_norm = false;          // normalize each head's queries and keys before they turn
  bool qk_norm_whole = false;    // normalize the queries of all heads together, and the keys
  bool qk_norm_plain = false;    // normalize each head's queries and keys, and give them no gain
  bool qk_norm_turning = false;  // these in layers that turn alone
  bool qk_norm_each = false;     // normalize each head's queries and keys by gains of its own, without biases
  bool qk_norm_turned = false;   // all of these behind turning

  bool attention_gate = false;  // what a head gives is multiplied by the sigmoid of a gate of its own

  Activation activation = Activation::gelu;
  bool gated = false;      // act(x W_gate) * (x W_up): swiglu with silu, geglu with gelu
  double gate_limit = 0;   // of both halves before that (tensor/kinds.h); 0: none
  double gate_offset = 0;  // added to what the gate lets through

  bool linear_bias = true;  // of attention projection and both MLP matrices
  bool qkv_bias = true;
  bool project_bias = true;  // of attention's output, where linear_bias gives it one
  bool mlp_bias = true;      // of MLPs, where linear_bias gives them some
  bool tied_output = true;
  bool residual_after_norm = false;   // a block adds to what its norm gave, not to what the norm read
  double residual_multiplier = 1.0;   // of what attention and MLPs add
  bool residual_in_f32 = false;       // what they add to, whatever they read and give
  bool sentence_order = true;         // BERT: tells too whether the text's two parts were swapped
  bool token_types = false;           // BERT: words have types without sentence_order, too
  bool output_bias = true;            // of the words' logits: a BERT's, and a T5's whose output is tied
  bool logits_bias = false;           // GPT: biases of its logits
  double embedding_multiplier = 1.0;  // applied to the summed embeddings
  double output_multiplier = 1.0;     // applied to the logits, before any bias of theirs
  double output_cap = 0.0;            // then they become cap tanh(logit / cap); 0: they stay
  /// Of a sample's tokens so many are guessed at most, and training makes no other logits; 0: those of all.
  /// No setting: a run makes it of its data's.
  std::int64_t most_guesses = 0;
  /// Tokens whose logits exist at once. No setting: a run makes it of its device.
  std::int64_t logits_at_once = 1024;

  double hidden_dropout = 0.1, attention_dropout = 0.1;
  LayerDrop layer_drop;
  TokenDrop token_drop;
  double softmax_scale = 0.0;  // 0: 1/sqrt(channels)
  ScoresConfig scores;
  double qkv_limit = 0;  // of queries, keys and values, on both sides; 0: none
  Sink sink = Sink::none;
  std::int64_t window = 0;         // keys a query sees, itself included; 0: all before it
  std::vector<int> window_layers;  // one 0 or 1 a layer: 1 looks through the window; empty: all do
  int window_full_every = 0;       // fills window_layers: every n-th layer sees everything; 0: none does

  ExpertsConfig experts;  // of the layers that have them in place of an MLP

  AheadConfig ahead;
  InitConfig init;
  MupConfig mup;
  RecomputeConfig recompute;
  Precision precision = Precision::f32;
  Fp8Config fp8;
  bool exact = false;  // fixed units of summation: bits do not depend on the layout
};

/// What a run needs is planned a layer at a time, before it takes any memory.
inline constexpr int most_layers = 20'000;

template <class Visitor>
void describe(Visitor& v, RelativeConfig& c) {
  v("buckets", c.buckets, OnResume::model, "relative positions: kinds of distances", legal::size);
  v("farthest", c.farthest, OnResume::model, "relative positions: the distance from which all are alike",
    legal::size);
}

template <class Visitor>
void describe(Visitor& v, InitConfig& c) {
  v("method", c.method, OnResume::free, "distribution of initial weights");
  v("std", c.std, OnResume::free, "standard deviation of initial weights", legal::not_negative);
  v("embedding_std", c.embedding_std, OnResume::free, "standard deviation of initial embeddings",
    legal::not_negative);
  v("scale_output_layers", c.scale_output_layers, OnResume::free,
    "divide it by sqrt(2 layers) where a block's output is made");
}

template <class Visitor>
void describe(Visitor& v, MupConfig& c) {
  v("on", c.on, OnResume::model, "rates and initial weights follow the width of the model");
  v("base_hidden", c.base_hidden, OnResume::model, "width of the model that settings were found for",
    legal::size_or_none);
  v("embedding_multiplier", c.embedding_multiplier, OnResume::model, "embeddings are multiplied by this",
    legal::finite);
  v("output_multiplier", c.output_multiplier, OnResume::model, "logits are multiplied by this (1: 1/width)",
    legal::positive);
  v("base_channels", c.base_channels, OnResume::model,
    "channels of a head at which scores are scaled as usual", legal::positive);
  v("attention_power", c.attention_power, OnResume::model, "scores are divided by channels to this power",
    legal::not_negative);
}

template <class Visitor>
void describe(Visitor& v, LayerDrop& c) {
  v("theta", c.theta, OnResume::step,
    "the later a step and the deeper a layer, the more often it is left out: at last a part near 1 - theta "
    "of "
    "the deepest (1: none)",
    legal::fraction);
  v("gamma", c.gamma, OnResume::step, "how fast that grows: 1 - exp(-gamma steps) of it",
    legal::not_negative);
}

template <class Visitor>
void describe(Visitor& v, TokenDrop& c) {
  v("layers", c.layers, OnResume::step, "layers that see a part of each sample's tokens, chosen by chance",
    legal::from_to(0, most_layers));
  v("least", c.least, OnResume::step, "tokens that they see in the first step", legal::size_or_none);
  v("most", c.most, OnResume::step, "tokens that they see at last", legal::size_or_none);
  v("steps", c.steps, OnResume::step, "steps until then", legal::count);
  v("multiple", c.multiple, OnResume::step, "between, their number is rounded down to multiples of it",
    legal::size);
}

/// Of the model, and of queries and keys; and the gates of what heads give.
template <class Visitor>
void describe_norms(Visitor& v, ModelConfig& c) {
  v("norm", c.norm, OnResume::model, "kind of all norms");
  v("norm_epsilon", c.norm_epsilon, OnResume::model, "added to the variance in all norms", legal::positive);
  v("norm_centered_gain", c.norm_centered_gain, OnResume::model, "store the gain minus one");
  v("norm_bias", c.norm_bias, OnResume::model, "biases of layer norms");
  v("norm_gain", c.norm_gain, OnResume::model, "gains of norms of hidden states, and their biases");
  v("embedding_norm", c.embedding_norm, OnResume::model,
    "GPT: normalize embeddings, in place of dropout on them, as BLOOM does");
  v("norm_places", c.norm_places, OnResume::model,
    "norms of what attention and MLPs read, of what they give, or of both");
  v("parallel_sublayers", c.parallel_sublayers, OnResume::model,
    "attention and MLPs read the same and are added at once, behind norms of their own or behind one");
  v("qk_norm", c.qk_norm, OnResume::model, "normalize queries and keys, head by head");
  v("qk_norm_whole", c.qk_norm_whole, OnResume::model,
    "normalize queries and keys of all heads together, as OLMoE does");
  v("qk_norm_plain", c.qk_norm_plain, OnResume::model,
    "normalize queries and keys, head by head, and give them no gain, as Llama 4 does");
  v("qk_norm_turning", c.qk_norm_turning, OnResume::model,
    "such norms in layers with rotary positions alone, as Llama 4 has them");
  v("qk_norm_each", c.qk_norm_each, OnResume::model,
    "normalize queries and keys, head by head, by gains of each head's own, as Command-R+ does");
  v("qk_norm_turned", c.qk_norm_turned, OnResume::model,
    "normalize queries and keys behind rotary positions, as Hunyuan does");
  v("attention_gate", c.attention_gate, OnResume::model,
    "multiply what heads give by the sigmoid of gates that are made of the token, as Qwen3-Next does");
}

/// What is guessed, and what becomes of embeddings and logits.
template <class Visitor>
void describe_ends(Visitor& v, ModelConfig& c) {
  v("sentence_order", c.sentence_order, OnResume::model,
    "BERT: tell whether the two parts of a text were swapped");
  v("token_types", c.token_types, OnResume::model, "BERT: tokens have types without sentence_order, too");
  v("output_bias", c.output_bias, OnResume::model, "biases of logits: BERT's, and a tied T5's");
  v("logits_bias", c.logits_bias, OnResume::model, "GPT: biases of its logits");
  v("embedding_multiplier", c.embedding_multiplier, OnResume::model, "embeddings are multiplied by this",
    legal::finite);
  v("output_multiplier", c.output_multiplier, OnResume::model, "of the logits", legal::finite);
  v("output_cap", c.output_cap, OnResume::model,
    "logits become cap tanh(logit / cap), as Gemma 2 has them (0: they stay as they are)",
    legal::not_negative);
}

template <class Visitor>
void describe(Visitor& v, ModelConfig& c) {
  v("layers", c.layers, OnResume::model, "transformer blocks; T5: of the encoder",
    legal::from_to(1, most_layers));
  v("decoder_layers", c.decoder_layers, OnResume::model,
    "T5: blocks of the decoder (0: as many as the encoder's)", legal::from_to(0, most_layers));
  v("hidden", c.hidden, OnResume::model, "width of the residual stream", legal::size);
  v("ffn_hidden", c.ffn_hidden, OnResume::model, "inner width of the MLP", legal::size_or_none);
  v("heads", c.heads, OnResume::model, "query heads", legal::size);
  v("groups", c.groups, OnResume::model, "key/value heads", legal::size_or_none);
  v("channels", c.channels, OnResume::model, "channels of one head", legal::size_or_none);
  v.group("latent", c.latent);
  v.group("delta", c.delta);
  v.group("state", c.state);
  v.group("hybrid", c.hybrid);
  v("sequence", c.sequence, OnResume::model, "tokens in one training sample; T5: of the encoder",
    legal::size);
  v("decoder_sequence", c.decoder_sequence, OnResume::model,
    "T5: tokens of the decoder in one training sample", legal::size_or_none);
  v("max_positions", c.max_positions, OnResume::model, "length of the learned position table",
    legal::size_or_none);
  v("vocabulary", c.vocabulary, OnResume::model, "token ids that may occur", legal::size_or_none);
  v("vocabulary_unit", c.vocabulary_unit, OnResume::free,
    "storage of the vocabulary is rounded up to a multiple of this", legal::size);
  v("padded_vocabulary", c.padded_vocabulary, OnResume::free, "rows of the embedding in storage",
    legal::size_or_none);
  v("positions", c.positions, OnResume::model, "how a token knows where it stands");
  v.group("rotary", c.rotary);
  v.group("relative", c.relative);
  v.group("alibi", c.alibi);
  describe_norms(v, c);
  v("activation", c.activation, OnResume::model, "non-linearity of the MLP");
  v("gated", c.gated, OnResume::model, "gate the MLP: activation(gate) times up");
  v("gate_limit", c.gate_limit, OnResume::model,
    "gated MLPs: what is gated is kept within this on both sides, what gates it below it (0: no limit)",
    legal::not_negative);
  v("gate_offset", c.gate_offset, OnResume::model, "gated MLPs: added to what is gated", legal::finite);
  v("linear_bias", c.linear_bias, OnResume::model, "biases in the attention projection and the MLP");
  v("qkv_bias", c.qkv_bias, OnResume::model, "biases in the query, key and value projection");
  v("project_bias", c.project_bias, OnResume::model,
    "where the attention projection and the MLP have biases, those of the former");
  v("mlp_bias", c.mlp_bias, OnResume::model,
    "where the attention projection and the MLP have biases, those of the latter");
  v("tied_output", c.tied_output, OnResume::model, "the output layer is the embedding");
  v("residual_after_norm", c.residual_after_norm, OnResume::model,
    "a block adds to its norm's output, not to its input");
  v("residual_multiplier", c.residual_multiplier, OnResume::model,
    "what attention and MLPs add is multiplied by this", legal::positive);
  v("residual_in_f32", c.residual_in_f32, OnResume::step,
    "hidden states between attention and MLPs, and their gradients, are f32");
  describe_ends(v, c);
  v("hidden_dropout", c.hidden_dropout, OnResume::step, "dropout on embeddings and on what a block adds",
    legal::below_one);
  v("attention_dropout", c.attention_dropout, OnResume::step, "dropout on attention probabilities",
    legal::below_one);
  v.group("layer_drop", c.layer_drop);
  v.group("token_drop", c.token_drop);
  v("softmax_scale", c.softmax_scale, OnResume::model, "scores are multiplied by this (0: 1/sqrt(channels))",
    legal::not_negative);
  v.group("scores", c.scores);
  v("qkv_limit", c.qkv_limit, OnResume::model,
    "queries, keys and values are kept within this on both sides, as OLMo 1 does (0: no limit)",
    legal::not_negative);
  v("sink", c.sink, OnResume::model,
    "what each head gives to no key: nothing, or a score's share of softmax");
  v("window", c.window, OnResume::model, "keys that a query sees, itself included (0: all before it)",
    legal::size_or_none);
  v("window_layers", c.window_layers, OnResume::model,
    "which layers look through the window, or see chunks (empty: all)", legal::fraction);
  v("window_full_every", c.window_full_every, OnResume::model,
    "every n-th layer sees everything (0: none does)", legal::size_or_none);
  v.group("ahead", c.ahead);
  v.group("experts", c.experts);
  v.group("init", c.init);
  v.group("mup", c.mup);
  v.group("recompute", c.recompute);
  v("precision", c.precision, OnResume::step, "type of activations and multiplied weights");
  v.group("fp8", c.fp8);
  v("exact", c.exact, OnResume::told_sums, "bits do not depend on the layout");
}

Dtype compute_type(Precision);
/// Of hidden states from the embedding to the last norm, and of their gradient.
Dtype residual_type(const ModelConfig&);

/// How many times as wide as the model that its settings were found for; 1 without muP.
double width_of(const ModelConfig&);

/// Whether places turn channels: rotary positions do, and latent attention beside any others.
bool turns_channels(const ModelConfig&);
/// Of a head's channels, those that rotary positions may turn.
std::int64_t turning_channels(const ModelConfig&);
/// Of these, those that do.
std::int64_t turned_channels(const ModelConfig&);
/// Of MLPs and experts.
bool has_mlp_bias(const ModelConfig&);
/// Of a head's values.
std::int64_t value_channels(const ModelConfig&);
/// Of what makes queries, keys and values, and gates where there are some.
std::int64_t qkv_rows(const ModelConfig&);

/// One 0 or 1 a layer: 0 for every n-th.
std::vector<int> all_but_every(int n, int layers);

/// Fills in what follows from other fields, and refuses shapes that no model of the family has.
void complete(ModelConfig&);
/// What layers of some families may be, and of others not.
struct LayerForms {
  bool experts = false, latent = false, further_tokens = false, sinks = false, delta = false, gates = false,
       hybrid = false, norm_places = false, scores = false, parallel = false, logits_bias = false,
       alibi = false, embedding_norm = false, bare = false;
};
/// The same for one stack of layers.
void complete_decoder(ModelConfig&, const LayerForms& may = {});
/// What the layers of all families have in common.
void complete_layers(ModelConfig&, const LayerForms& may = {});

}  // namespace weft
