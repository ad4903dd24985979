// Arithmetic on shapes.
#include "weft/model/count.h"

namespace weft {
namespace {

struct Widths {
  double h, q, kv, f, v, s;
  double gates;  // matrices of the MLP that read x: two where it is gated
};

Widths widths(const ModelConfig& c) {
  return {.h = double(c.hidden),
          .q = double(c.heads * c.channels),
          .kv = double(c.groups * c.channels),
          .f = double(c.ffn_hidden),
          .v = double(c.vocabulary),
          .s = double(c.sequence),
          .gates = c.gated ? 2.0 : 1.0};
}

std::int64_t norm_size(const ModelConfig& c, std::int64_t width) {
  return (c.norm == NormKind::layer ? 2 : 1) * width;
}

std::int64_t attention_parameters(const ModelConfig& c) {
  const std::int64_t q = c.heads * c.channels;
  const std::int64_t qkv = q + 2 * c.groups * c.channels;
  const std::int64_t biases = (c.qkv_bias ? qkv : 0) + (c.linear_bias ? c.hidden : 0);
  const std::int64_t norms = c.qk_norm ? 2 * norm_size(c, c.channels) : 0;
  return c.hidden * (qkv + q) + biases + norms;
}

std::int64_t mlp_parameters(const ModelConfig& c) {
  const std::int64_t up = (c.gated ? 2 : 1) * c.ffn_hidden;
  return c.hidden * (up + c.ffn_hidden) + (c.linear_bias ? up + c.hidden : 0);
}

std::int64_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 2; }

}  // namespace

ParameterCount count_parameters(const ModelConfig& c) {
  ParameterCount count;
  count.embedding = c.vocabulary * c.hidden * (c.tied_output ? 1 : 2);
  if (c.positions == Positions::learned) count.embedding += c.max_positions * c.hidden;
  const std::int64_t block = attention_parameters(c) + mlp_parameters(c) + 2 * norm_size(c, c.hidden);
  count.blocks = c.layers * block + norm_size(c, c.hidden);
  return count;
}

double training_flops(const ModelConfig& c, std::int64_t sequence) {
  const Widths w = widths(c);
  const double products = w.h * w.f * (w.gates + 1) + w.h * (w.q + 2 * w.kv) + w.q * w.h;
  const double tokens = double(sequence);
  return 6 * tokens * (c.layers * products + w.h * w.v) + 6 * tokens * tokens * w.q * c.layers;
}

double bytes_at_rest(const ModelConfig& c) {
  const double half_copy = c.precision == Precision::f32 ? 0 : 2;
  return double(count_parameters(c).total()) * (4 + 4 + 8 + half_copy);
}

// s b h (34 + 5 n s / h) counts two bytes an element and the score matrices; the latter exist nowhere here.
double activation_bound(const ModelConfig& c, std::int64_t micro_batch) {
  const Widths w = widths(c);
  const double per_layer = w.s * double(micro_batch) * w.h * (18 + 4 * w.f / w.h);
  const double ends = 8 * w.s * double(micro_batch) + w.s * double(micro_batch) * w.h +
                      4 * w.s * double(micro_batch) * w.h * (1 + w.v / w.h);
  return (c.layers * per_layer + ends) * double(bytes_of(c.precision)) / 2;
}

}  // namespace weft
