// What a step of a GPT costs: arithmetic on shapes.
#include "weft/model/experts.h"
#include "weft/model/gpt/gpt.h"

namespace weft {
namespace {

struct Widths {
  double h, q, kv, f, v, s;
  double gates;         // matrices of the MLP that read x: two where it is gated
  double layers, ends;  // with those of further tokens
};

Widths widths(const ModelConfig& c) {
  return {.h = double(c.hidden),
          .q = double(c.heads * c.channels),
          .kv = double(c.groups * c.channels),
          .f = double(c.ffn_hidden),
          .v = double(c.vocabulary),
          .s = double(c.sequence),
          .gates = c.gated ? 2.0 : 1.0,
          .layers = double(c.layers + c.ahead.depths),
          .ends = double(1 + c.ahead.depths)};
}

/// Multiplications of a token in attention's matrices, norms of latents counted as Megatron does.
double attention_products(const ModelConfig& c, const Widths& w) {
  const LatentConfig& l = c.latent;
  if (!l.on) return w.h * double(qkv_rows(c)) + w.q * w.h;
  const double rank = double(l.rank), query_rank = double(l.query_rank);
  const double values = double(c.heads * l.value_channels), keys = double(c.heads * l.plain_channels);
  const double queries = query_rank > 0 ? query_rank * (w.h + w.q + 1) : w.h * w.q;
  return queries + rank * (w.h + keys + values + 1) + w.h * double(l.turned_channels) + values * w.h;
}

/// The same of a layer that remembers, with what it multiplies beside matrices, as Megatron counts it.
double delta_products(const ModelConfig& c, const Widths& w) {
  const DeltaShape d = c.delta.shape();
  const double keys = double(d.keys), values = keys * double(d.values());
  return w.h * keys * double(d.width()) + keys * double(d.filtered() * c.delta.taps) +
         4 * values * double(d.value) + values * w.h;
}

/// Layers of further tokens are as the last one is.
double layers_that_remember(const ModelConfig& c) {
  return c.delta.layers_with() + (c.delta.at(c.layers - 1) ? c.ahead.depths : 0);
}

/// What a token leaves in such a layer beside its norm: what was made, filtered, brought to one length and
/// said.
double delta_activations(const ModelConfig& c) {
  const DeltaShape d = c.delta.shape();
  return 2 * double(d.keys * (d.width() + d.filtered() + 2 * d.channels + 2 * d.values()));
}

/// The channels of a query and of a value, over all heads: what a pair of tokens multiplies.
double channels_of_a_pair(const ModelConfig& c, const Widths& w) {
  return (w.q + double(c.heads * value_channels(c))) / 2;
}

/// What a token leaves in attention beyond attention as it is counted below: gates and what they let through,
/// or latents and heads, which may be wider than the hidden state.
double attention_activations(const ModelConfig& c, const Widths& w) {
  const LatentConfig& l = c.latent;
  if (!l.on) return c.attention_gate ? 4 * w.q : 0;
  const double latents = 2 * double(l.query_rank) + 2 * double(l.rank) + double(l.turned_channels);
  return 2 * (latents + 2 * w.q + double(c.heads * (l.plain_channels + 2 * l.value_channels)));
}

std::int64_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 2; }

/// Layers of further tokens are as the last one is.
double layers_of_experts(const ModelConfig& c) {
  const bool last = c.experts.count > 0 && c.experts.at(c.layers - 1);
  return c.experts.layers_with() + (last ? c.ahead.depths : 0);
}

/// Inner widths that a token goes through, over all layers: of experts those that compute it.
double inner_widths(const ModelConfig& c, const Widths& w) {
  const double mixtures = layers_of_experts(c);
  return (w.layers - mixtures) * w.f + (mixtures > 0 ? mixtures * width_of_experts(c) : 0);
}

/// What a token leaves in a layer of experts beside inner widths: its rows, one for each expert.
double rows_of_experts(const ModelConfig& c) {
  const auto inner = double(c.experts.latent > 0 ? c.experts.latent : c.hidden);
  return 2 * double(c.experts.router.chosen) * inner;
}

}  // namespace

double gpt_training_flops(const ModelConfig& c, std::int64_t sequence) {
  const Widths w = widths(c);
  const double remember = layers_that_remember(c), attend = w.layers - remember;
  const double products = w.h * inner_widths(c, w) * (w.gates + 1) + attend * attention_products(c, w) +
                          (remember > 0 ? remember * delta_products(c, w) : 0) +
                          layers_of_experts(c) * 2 * w.h * double(c.experts.latent);
  const double tokens = double(sequence), joins = double(c.ahead.depths) * (3 * w.h + 2 * w.h * w.h);
  return 6 * tokens * (products + joins + w.ends * w.h * w.v) +
         6 * tokens * tokens * channels_of_a_pair(c, w) * attend;
}

// s b h (34 + 5 n s / h) counts two bytes an element and the score matrices; the latter exist nowhere here.
double gpt_activation_bound(const ModelConfig& c, std::int64_t micro_batch) {
  const Widths w = widths(c);
  const double tokens = w.s * double(micro_batch);
  const double layers = w.layers * (w.h * 18 + attention_activations(c, w)) + 4 * inner_widths(c, w) +
                        layers_that_remember(c) * delta_activations(c) +
                        layers_of_experts(c) * rows_of_experts(c);
  const double ends = 8 * tokens + tokens * w.h + 4 * tokens * w.h * (1 + w.v / w.h);
  const double joins = double(c.ahead.depths) * tokens * w.h * 12;  // words, both norms, the end
  return (tokens * layers + w.ends * ends + joins) * double(bytes_of(c.precision)) / 2;
}

}  // namespace weft
