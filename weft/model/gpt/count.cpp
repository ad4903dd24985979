// What a step of a GPT costs: arithmetic on shapes.
#include "weft/model/gpt/gpt.h"

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

std::int64_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 2; }

}  // namespace

double gpt_training_flops(const ModelConfig& c, std::int64_t sequence) {
  const Widths w = widths(c);
  const double products = w.h * w.f * (w.gates + 1) + w.h * (w.q + 2 * w.kv) + w.q * w.h;
  const double tokens = double(sequence);
  return 6 * tokens * (c.layers * products + w.h * w.v) + 6 * tokens * tokens * w.q * c.layers;
}

// s b h (34 + 5 n s / h) counts two bytes an element and the score matrices; the latter exist nowhere here.
double gpt_activation_bound(const ModelConfig& c, std::int64_t micro_batch) {
  const Widths w = widths(c);
  const double per_layer = w.s * double(micro_batch) * w.h * (18 + 4 * w.f / w.h);
  const double ends = 8 * w.s * double(micro_batch) + w.s * double(micro_batch) * w.h +
                      4 * w.s * double(micro_batch) * w.h * (1 + w.v / w.h);
  return (c.layers * per_layer + ends) * double(bytes_of(c.precision)) / 2;
}

}  // namespace weft
