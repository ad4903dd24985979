// What a step of a GPT costs: arithmetic on shapes.
#include "weft/model/experts.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/layer_parts.h"

namespace weft {
namespace {

struct Widths {
  double h, q, kv, f, v, s;
  double gates;  // matrices of the MLP that read x: two where it is gated
  double ends;   // of the model, and of further tokens
};

Widths widths(const ModelConfig& c) {
  return {.h = double(c.hidden),
          .q = double(c.heads * c.channels),
          .kv = double(c.groups * c.channels),
          .f = double(c.ffn_hidden),
          .v = double(c.vocabulary),
          .s = double(c.sequence),
          .gates = c.gated ? 2.0 : 1.0,
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
  const MemoryShape d = c.delta.shape();
  const double keys = double(d.keys), values = keys * double(d.values());
  return w.h * keys * double(d.width()) + keys * double(d.filtered() * c.delta.taps) +
         4 * values * double(d.value) + values * w.h;
}

/// The same of a state space, as Megatron counts it, but for the true width of its heads together.
double state_products(const ModelConfig& c, const Widths& w) {
  const MemoryShape s = c.state.shape();
  const double keys = double(s.keys), values = keys * double(s.values());
  return w.h * keys * double(s.width()) + 3.5 * values * double(s.channels) + values * w.h;
}

/// Parts of the model's layers.
struct Parts {
  double attention, delta, state, mlps, mixtures;
  explicit Parts(const ModelConfig& c)
      : attention(parts_in_all(c, LayerPart::attention)),
        delta(parts_in_all(c, LayerPart::delta)),
        state(parts_in_all(c, LayerPart::state)),
        mlps(parts_in_all(c, LayerPart::mlp)),
        mixtures(parts_in_all(c, LayerPart::experts)) {}
  double all() const { return attention + delta + state + mlps + mixtures; }
};

/// What a token leaves in such a layer beside its norm: what was made, filtered, brought to one length and
/// said.
double delta_activations(const ModelConfig& c) {
  const MemoryShape d = c.delta.shape();
  return 2 * double(d.keys * (d.width() + d.filtered() + 2 * d.channels + 2 * d.values()));
}

/// The same of a state space: what was made, filtered and remembered, and what its norm read.
double state_activations(const ModelConfig& c) {
  const MemoryShape s = c.state.shape();
  return 2 * double(s.keys * (s.width() + s.filtered() + 2 * s.values()));
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

/// Inner widths that a token goes through, over all layers: of experts those that compute it.
double inner_widths(const ModelConfig& c, const Widths& w) {
  const Parts parts(c);
  return parts.mlps * w.f + (parts.mixtures > 0 ? parts.mixtures * width_of_experts(c) : 0);
}

/// What a token leaves in a layer of experts beside inner widths: its rows, one for each expert.
double rows_of_experts(const ModelConfig& c) {
  const auto inner = double(c.experts.latent > 0 ? c.experts.latent : c.hidden);
  return 2 * double(c.experts.router.chosen) * inner;
}

/// Bytes that a part of a layer keeps for each channel of the stream: what a norm behind read as well, and of
/// two that read the same, half of it.
double streams_of_a_part(const ModelConfig& c) {
  if (c.parallel_sublayers != ParallelSublayers::none)
    return c.parallel_sublayers == ParallelSublayers::one_norm ? 7 : 8;
  return 9 + (c.norm_places == NormPlaces::around ? 2 : 0);
}

}  // namespace

double gpt_training_flops(const ModelConfig& c, std::int64_t sequence) {
  const Widths w = widths(c);
  const Parts parts(c);
  const double products = w.h * inner_widths(c, w) * (w.gates + 1) +
                          parts.attention * attention_products(c, w) +
                          (parts.delta > 0 ? parts.delta * delta_products(c, w) : 0) +
                          (parts.state > 0 ? parts.state * state_products(c, w) : 0) +
                          parts.mixtures * 2 * w.h * double(c.experts.latent);
  const double tokens = double(sequence), joins = double(c.ahead.depths) * (3 * w.h + 2 * w.h * w.h);
  return 6 * tokens * (products + joins + w.ends * w.h * w.v) +
         6 * tokens * tokens * channels_of_a_pair(c, w) * parts.attention;
}

// s b h (34 + 5 n s / h) counts two bytes an element and the score matrices; the latter exist nowhere here.
double gpt_activation_bound(const ModelConfig& c, std::int64_t micro_batch) {
  const Widths w = widths(c);
  const double tokens = w.s * double(micro_batch);
  const Parts parts(c);
  // Where it is f32 beside halves, what is read of the residual stream counts twice.
  const double more = residual_type(c) == compute_type(c.precision) ? 0 : 2;
  const double layers =
      parts.all() * w.h * (streams_of_a_part(c) + more) + parts.attention * attention_activations(c, w) +
      4 * inner_widths(c, w) + parts.delta * delta_activations(c) +
      (parts.state > 0 ? parts.state * state_activations(c) : 0) + parts.mixtures * rows_of_experts(c);
  const double ends = 8 * tokens + tokens * w.h * (1 + more) + 4 * tokens * w.h * (1 + w.v / w.h);
  const double joins = double(c.ahead.depths) * tokens * w.h * (12 + 2 * more);  // words, both norms, the end
  return (tokens * layers + w.ends * ends + joins) * double(bytes_of(c.precision)) / 2;
}

}  // namespace weft
