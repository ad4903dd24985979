#include "weft/model/config.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/model/layer_parts.h"

namespace weft {
namespace {

void need(bool given, std::string_view what) {
  if (!given) fail(Kind::usage, "model: ", what, " is not set");
}

void check_sizes(const ModelConfig& m) {
  need(m.layers > 0, "the number of layers");
  need(m.hidden > 0, "the hidden size");
  need(m.heads > 0, "the number of attention heads");
  need(m.sequence > 0, "the sequence length");
}

// swiglu keeps the parameter count of a plain MLP: two thirds of 4h, cut down to a multiple of 64.
std::int64_t usual_ffn(const ModelConfig& m) {
  const bool swiglu = m.gated && m.activation == Activation::silu;
  return swiglu ? (4 * m.hidden * 2 / 3) / 64 * 64 : 4 * m.hidden;
}

// A head is as wide as its two parts together; Megatron's scripts say its width all the same, one way or
// another.
void complete_latent(ModelConfig& m) {
  const LatentConfig& l = m.latent;
  const std::int64_t whole = l.plain_channels + l.turned_channels;
  if (m.groups != 0 && m.groups != m.heads)
    fail(Kind::usage, "model: latent attention has a key for every head, and {model.groups} is ", m.groups);
  if (m.channels != 0 && m.channels != whole && m.channels != l.plain_channels &&
      m.channels != l.value_channels)
    fail(Kind::usage, "model: heads of latent attention are ", l.plain_channels, " + ", l.turned_channels,
         " channels wide and {model.channels} is ", m.channels, "; leave it out");
  if (m.rotary.percent != 1)
    fail(Kind::usage,
         "model: {model.latent.turned_channels} says how many channels turn: leave "
         "{model.rotary.percent} out");
  if (l.turned_channels % 2 != 0)
    fail(Kind::usage,
         "model: rotary positions turn channels in pairs, and {model.latent.turned_channels} is ",
         l.turned_channels);
  if (m.qkv_bias && !m.linear_bias)
    fail(Kind::usage, "model: latent attention has no biases of queries, keys and values");
  if (m.mup.on) fail(Kind::usage, "model: latent attention has no scale by width: leave {model.mup.on} out");
  m.groups = m.heads;
  m.channels = whole;
  m.qkv_bias = false;
  m.rotary.interleaved = true;  // as Megatron and DeepSeek turn what heads share
}

void no_latent(const LatentConfig& l) {
  const LatentConfig none;
  if (l.query_rank != none.query_rank || l.rank != none.rank || l.plain_channels != none.plain_channels ||
      l.turned_channels != none.turned_channels || l.value_channels != none.value_channels)
    fail(Kind::usage, "model: sizes of latent attention are given, but it is not on: add {model.latent.on}");
}

void complete_head_norms(ModelConfig& m) {
  for (const auto& [on, name] : {std::pair{m.qk_norm_whole, "{model.qk_norm_whole}"},
                                 std::pair{m.qk_norm_plain, "{model.qk_norm_plain}"},
                                 std::pair{m.qk_norm_each, "{model.qk_norm_each}"},
                                 std::pair{m.qk_norm_turned, "{model.qk_norm_turned}"}})
    if (on && m.latent.on)
      fail(Kind::usage, "model: latent attention normalizes latents: leave ", name, " out");
  if (m.qk_norm_whole && m.qk_norm_plain)
    fail(Kind::usage,
         "model: {model.qk_norm_whole} is about all heads together and {model.qk_norm_plain} about each: "
         "leave one of them out");
  if (m.qk_norm_each && (m.qk_norm_whole || m.qk_norm_plain))
    fail(Kind::usage, "model: {model.qk_norm_each} gives each head gains of its own, and ",
         m.qk_norm_whole ? "{model.qk_norm_whole} all heads together" : "{model.qk_norm_plain} none",
         ": leave one of them out");
  if (m.qk_norm_turning && !m.qk_norm_plain)
    fail(Kind::usage,
         "model: {model.qk_norm_turning} is about norms without gains, and there are none: add "
         "{model.qk_norm_plain}");
  if (m.qk_norm_whole || m.qk_norm_plain || m.qk_norm_each) m.qk_norm = true;
  if (m.qk_norm_turned && !m.qk_norm)
    fail(Kind::usage,
         "model: {model.qk_norm_turned} says where norms of queries and keys stand, and there are none: add "
         "{model.qk_norm}");
}

void check_bare(const ModelConfig& m, const LayerForms& may) {
  if ((!m.norm_gain || !m.mlp_bias || m.qkv_limit > 0) && !may.bare)
    fail(Kind::usage, "model: ", m.kind,
         " has gains in its norms, biases in MLPs where attention has some, and queries as they are: leave "
         "{model.norm_gain}, {model.mlp_bias} and {model.qkv_limit} out");
  if (m.qkv_limit > 0 && m.qkv_limit < 1)
    fail(Kind::usage, "model: {model.qkv_limit} is ", m.qkv_limit, ", expected 0 or 1 and more");
  if (m.qkv_limit > 0 && (m.latent.on || m.attention_gate))
    fail(Kind::usage, "model: {model.qkv_limit} limits queries, keys and values, and ",
         m.latent.on ? "{model.latent.on} makes them of latents" : "{model.attention_gate} has gates there",
         ": leave one of them out");
}

void complete_heads(ModelConfig& m) {
  complete_head_norms(m);
  if (m.latent.on) return complete_latent(m);
  no_latent(m.latent);
  if (m.groups == 0) m.groups = m.heads;
  if (m.heads % m.groups != 0)
    fail(Kind::usage, "model: ", m.heads, " attention heads are not a multiple of ", m.groups,
         " query groups");
  if (m.channels == 0 && m.hidden % m.heads != 0)
    fail(Kind::usage, "model: hidden size ", m.hidden, " is not a multiple of ", m.heads,
         " attention heads; set the channels of a head, {model.channels}");
  if (m.channels == 0) m.channels = m.hidden / m.heads;
}

void complete_vocabulary(ModelConfig& m) {
  const std::int64_t unit = m.vocabulary_unit;
  if (unit < 1) fail(Kind::usage, "model: the vocabulary cannot be rounded up to a multiple of ", unit);
  if (m.padded_vocabulary == 0) m.padded_vocabulary = (m.vocabulary + unit - 1) / unit * unit;
  if (m.padded_vocabulary < m.vocabulary)
    fail(Kind::usage, "model: the padded vocabulary ", m.padded_vocabulary,
         " is smaller than the vocabulary ", m.vocabulary);
}

void complete_window(ModelConfig& m) {
  if (m.window_full_every > 0 && m.window_layers.empty())
    m.window_layers = all_but_every(m.window_full_every, m.layers);
  if (!m.window_layers.empty() && std::ssize(m.window_layers) != m.layers)
    fail(Kind::usage, "model: ", m.window_layers.size(),
         " entries say which layers have a window, but there are ", m.layers, " layers");
  if (m.rotary.window_base && m.window == 0)
    fail(Kind::usage,
         "model: {model.rotary.window_base} is of layers that look through a window, and none does: add "
         "{model.window}");
  if (m.rotary.window_base && !turns_channels(m))
    fail(Kind::usage,
         "model: {model.rotary.window_base} is of rotary positions, and {model.positions} are others");
}

void complete_turning_layers(ModelConfig& m) {
  RotaryConfig& r = m.rotary;
  if (r.skip_every > 0 && r.skip_layers.empty())
    for (int layer = 1; layer <= m.layers; ++layer) r.skip_layers.push_back(layer % r.skip_every == 0);
  if (!r.skip_layers.empty() && std::ssize(r.skip_layers) != m.layers)
    fail(Kind::usage, "model: ", r.skip_layers.size(),
         " entries say which layers have no rotary positions, but there are ", m.layers, " layers");
}

void check_longrope(const ModelConfig& m) {
  const RotaryConfig& r = m.rotary;
  const bool on = r.scaling == RotaryScaling::longrope;
  const auto pairs = std::size_t(turned_channels(m) / 2);
  for (const auto& [factors, name] : {std::pair{&r.short_factors, "{model.rotary.short_factors}"},
                                      std::pair{&r.long_factors, "{model.rotary.long_factors}"}}) {
    if (!on && !factors->empty())
      fail(Kind::usage, "model: ", name, " is of {model.rotary.scaling=longrope}, which is not asked for");
    if (on && factors->size() != pairs)
      fail(Kind::usage, "model: ", name, " has ", factors->size(), " numbers, and ", pairs,
           " pairs of channels turn");
  }
  if (on && r.original_positions < 2)
    fail(Kind::usage,
         "model: {model.rotary.scaling=longrope} has one list of factors for sequences up to a length, and "
         "one for longer ones: {model.rotary.original_positions} says which");
}

void check_norm_places(const ModelConfig& m, const LayerForms& may) {
  if (m.norm_places == NormPlaces::before) return;
  if (!may.norm_places)
    fail(Kind::usage, "model: ", m.kind,
         " has norms before attention and MLPs: leave {model.norm_places} out");
  if (m.residual_after_norm)
    fail(Kind::usage,
         "model: {model.residual_after_norm} adds to what a norm before gave: leave it or "
         "{model.norm_places} out");
}

void check_scores(const ModelConfig& m, const LayerForms& may) {
  const ScoresConfig& scores = m.scores;
  if (scores.any() && !may.scores)
    fail(Kind::usage, "model: ", m.kind,
         " sees its whole text, and scores as they are: leave {model.scores.cap}, {model.scores.chunk} and "
         "{model.scores.growth_every} out");
  if (m.output_cap > 0 && !may.scores)
    fail(Kind::usage, "model: ", m.kind, " has logits as they are: leave {model.output_cap} out");
  if (scores.chunk > 0 && m.window > 0)
    fail(Kind::usage,
         "model: {model.scores.chunk} and {model.window} both say what a query sees: leave one out");
  if (scores.chunk > 0 && !m.token_drop.layers.empty())
    fail(Kind::usage,
         "model: {model.scores.chunk} is of places in a text, and {model.token_drop.layers} leaves some out: "
         "leave one out");
  if (scores.growth_every > 0 && scores.growth_of == QueryGrowth::all && m.positions == Positions::rotary &&
      (m.rotary.percent != 1 || m.rotary.window_base))
    fail(Kind::usage,
         "model: {model.scores.growth_of} all wants heads that turn whole, in all layers alike: leave "
         "{model.rotary.percent} and {model.rotary.window_base} out");
  if (scores.growth_every > 0 && m.latent.on)
    fail(Kind::usage,
         "model: {model.scores.growth_every} is of layers without rotary positions, which latent attention "
         "always has");
  if (scores.growth_every > 0 && m.channels % 2 != 0)
    fail(Kind::usage, "model: {model.scores.growth_every} wants heads of an even number of channels, not ",
         m.channels);
}

void check_parallel(const ModelConfig& m, const LayerForms& may) {
  if (m.parallel_sublayers == ParallelSublayers::none) return;
  if (!may.parallel)
    fail(Kind::usage, "model: ", m.kind,
         " has MLPs that read what attention added: leave {model.parallel_sublayers} out");
  if (m.hybrid.on())
    fail(Kind::usage,
         "model: layers of one thing each have nothing beside it: leave {model.parallel_sublayers} or "
         "{model.hybrid.layers} out");
  if (m.norm_places != NormPlaces::before || m.residual_after_norm)
    fail(Kind::usage,
         "model: {model.parallel_sublayers} has norms of what attention and MLPs read alone: leave it or ",
         m.residual_after_norm ? "{model.residual_after_norm}" : "{model.norm_places}", " out");
}

void complete_mup(ModelConfig& m) {
  MupConfig& mup = m.mup;
  if (!mup.on) return;
  if (mup.base_hidden == 0) mup.base_hidden = m.hidden;
  if (m.softmax_scale == 0)
    m.softmax_scale =
        std::sqrt(mup.base_channels.value_or(1)) / std::pow(double(m.channels), mup.attention_power);
  if (mup.output_multiplier == 1) mup.output_multiplier = 1 / width_of(m);
}

void check_forms(const ModelConfig& m, const LayerForms& may) {
  if (m.latent.on && !may.latent)
    fail(Kind::usage, "model: ", m.kind, " has no latent attention: leave {model.latent.on} out");
  if (m.ahead.depths > 0 && !may.further_tokens)
    fail(Kind::usage, "model: ", m.kind, " guesses no further tokens: leave {model.ahead.depths} out");
  if (m.ahead.repeated && m.ahead.depths == 0)
    fail(
        Kind::usage,
        "model: {model.ahead.repeated} is about further tokens, and {model.ahead.depths} is 0: say how many");
  if (m.sink != Sink::none && !may.sinks)
    fail(Kind::usage, "model: ", m.kind, " has no attention sinks: leave {model.sink} out");
  if (m.attention_gate && (!may.gates || m.latent.on))
    fail(Kind::usage, "model: ", m.latent.on ? "latent attention" : m.kind,
         " has no gates of what heads give: leave {model.attention_gate} out");
  if (m.delta.on && !may.delta)
    fail(Kind::usage, "model: ", m.kind, " has no layers that remember: leave {model.delta.on} out");
  if (m.hybrid.on() && !may.hybrid)
    fail(Kind::usage, "model: ", m.kind,
         " has no layers that are one thing each: leave {model.hybrid.layers} out");
  if (m.experts.count > 0 && !may.experts)
    fail(Kind::usage, "model: ", m.kind, " has no mixtures of experts: leave {model.experts.count} out");
  if (m.logits_bias && !may.logits_bias)
    fail(Kind::usage, "model: ", m.kind,
         " says by {model.output_bias} whether its logits have biases: leave {model.logits_bias} out");
  check_norm_places(m, may);
  check_parallel(m, may);
  check_bare(m, may);
}

/// Biases of scores that fall with distances, and norms of embeddings.
void check_alibi(const ModelConfig& m, const LayerForms& may) {
  if (m.embedding_norm && !may.embedding_norm)
    fail(Kind::usage, "model: ", m.kind, " has embeddings as they are: leave {model.embedding_norm} out");
  if (m.embedding_norm && m.ahead.depths > 0)
    fail(Kind::usage,
         "model: {model.ahead.depths} reads embeddings as they are: leave it or {model.embedding_norm} out");
  if (m.embedding_norm && m.residual_in_f32)
    fail(Kind::usage,
         "model: {model.embedding_norm} gives what layers add to in the type of the weights: leave it or "
         "{model.residual_in_f32} out");
  if (m.positions != Positions::alibi) return;
  if (!may.alibi)
    fail(Kind::usage, "model: ", m.kind, " has no scores that fall with distances: {model.positions} alibi");
  if (m.latent.on)
    fail(Kind::usage, "model: latent attention turns by places: leave {model.positions} alibi out");
  if (m.scores.cap > 0)
    fail(Kind::usage,
         "model: scores that fall with distances, {model.positions} alibi, have no {model.scores.cap}");
  if (!m.token_drop.layers.empty())
    fail(Kind::usage,
         "model: {model.positions} alibi counts the tokens between two, and {model.token_drop.layers} leaves "
         "some out: leave one out");
}

void check_fp8(const ModelConfig& m) {
  const Fp8Config& f = m.fp8;
  if (!f.on()) return;
  if (m.exact)
    fail(Kind::usage,
         "model: products of {model.fp8.format} are sums of no fixed order, so their bits depend on the "
         "layout: leave it or {model.exact} out");
  if (!f.ends_in_bf16) return;
  if (f.recipe == Fp8Recipe::delayed)
    fail(Kind::usage,
         "model: {model.fp8.ends_in_bf16} is, as in Megatron-LM, not for delayed scales: add "
         "{model.fp8.recipe} tensorwise, blockwise or mxfp8");
  const int least = m.decoder_layers > 0 ? std::min(m.layers, m.decoder_layers) : m.layers;
  if (std::int64_t{f.first_layers} + f.last_layers > least)
    fail(Kind::usage, "model: {model.fp8.first_layers} ", f.first_layers, " and {model.fp8.last_layers} ",
         f.last_layers, " are more than the ", least, " layers of a stack");
}

}  // namespace

Dtype compute_type(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return Dtype::f32;
    case Precision::bf16:
      return Dtype::bf16;
    case Precision::f16:
      return Dtype::f16;
  }
  return Dtype::f32;
}

Dtype residual_type(const ModelConfig& m) {
  return m.residual_in_f32 ? Dtype::f32 : compute_type(m.precision);
}

double width_of(const ModelConfig& m) {
  return m.mup.on && m.mup.base_hidden > 0 ? double(m.hidden) / double(m.mup.base_hidden) : 1;
}

bool turns_channels(const ModelConfig& m) { return m.positions == Positions::rotary || m.latent.on; }

std::int64_t turning_channels(const ModelConfig& m) {
  return m.latent.on ? m.latent.turned_channels : m.channels;
}

std::int64_t turned_channels(const ModelConfig& m) {
  return std::int64_t(double(turning_channels(m)) * m.rotary.percent) / 2 * 2;
}

bool has_mlp_bias(const ModelConfig& m) { return m.linear_bias && m.mlp_bias; }

std::int64_t value_channels(const ModelConfig& m) {
  return m.latent.on ? m.latent.value_channels : m.channels;
}

std::int64_t qkv_rows(const ModelConfig& m) {
  const int of_a_query = m.attention_gate ? 2 : 1;
  return (of_a_query * m.heads + 2 * m.groups) * m.channels;
}

std::vector<int> all_but_every(int n, int layers) {
  std::vector<int> out;
  for (int layer = 1; layer <= layers; ++layer) out.push_back(layer % n != 0);
  return out;
}

void complete_decoder(ModelConfig& m, const LayerForms& may) {
  complete_layers(m, may);
  if (m.decoder_layers > 0 || m.decoder_sequence > 0)
    fail(Kind::usage, "model: ", m.kind,
         " has one stack of layers; leave {model.decoder_layers} and {model.decoder_sequence} out");
  if (m.positions == Positions::relative)
    fail(Kind::usage, "model: ", m.kind, " has no relative positions, but learned or rotary ones");
}

void complete_layers(ModelConfig& m, const LayerForms& may) {
  check_forms(m, may);
  check_sizes(m);
  if (m.ffn_hidden == 0) m.ffn_hidden = usual_ffn(m);
  complete_heads(m);
  complete_vocabulary(m);
  if (m.max_positions == 0) m.max_positions = m.sequence;
  if (m.max_positions < m.sequence)
    fail(Kind::usage, "model: ", m.max_positions, " positions are fewer than the sequence length ",
         m.sequence);
  complete_window(m);
  complete_turning_layers(m);
  check_scores(m, may);
  check_alibi(m, may);
  check_longrope(m);
  complete_hybrid(m);
  complete_experts(m);
  complete_delta(m);
  complete_state(m);
  complete_mup(m);
  check_fp8(m);
}

}  // namespace weft
