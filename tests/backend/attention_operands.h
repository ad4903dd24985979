// Operands of attention by a case's shape, for suites that have shapes of their own.
#pragma once

#include "tests/backend/conformance.h"

namespace weft::conformance {

struct AttentionOperands {
  Attended in;
  AttentionArgs how;
};

/// A case has lengths sq and sk, batch b, groups g of r heads, channels d and value(), mask, diagonal,
/// window, segments, bias and dropout.
template <class Case>
AttentionOperands attention_operands(Desk& desk, const Case& c, Dtype dtype, float scale) {
  AttentionOperands out;
  out.in = {desk.normal({c.sq, c.b, c.g, c.r, c.d}, dtype), desk.normal({c.sk, c.b, c.g, c.d}, dtype),
            desk.normal({c.sk, c.b, c.g, c.value()}, dtype)};
  out.how = {.scale = scale, .mask = c.mask, .diagonal = c.diagonal, .window = c.window};
  out.how.dropout = c.dropout;
  out.how.at = {.seed = 5, .purpose = Purpose::dropout_attention, .step = 3, .layer = 1};
  if (c.segments) {
    // Of parts of sequences, as ranks that share one have them: their rows are no run.
    out.how.query_segments = desk.integers({c.b, c.sq + 3}, Dtype::i32, -1, 3).slice(1, 1, c.sq);
    out.how.key_segments = desk.integers({c.b, c.sk + 5}, Dtype::i32, -1, 3).slice(1, 2, c.sk);
  }
  if (c.bias) out.how.bias = desk.normal({c.g * c.r, c.sq + c.sk + 1});
  out.how.bias0 = c.sk;
  if (c.dropout > 0) {
    out.how.samples = desk.integers({c.b}, Dtype::i64, 0, 1000);
    out.how.head0 = 3;
    out.how.query0 = (1 << 14) - 35;  // numbers of blocks of random numbers outgrow 32 bits here
    out.how.key0 = 86 + 2 * c.r;      // a multiple of four, from which pairs can share a block, or not
  }
  return out;
}

}  // namespace weft::conformance
