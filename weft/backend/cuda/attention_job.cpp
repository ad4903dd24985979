#include "weft/backend/cuda/attention_job.h"

#include <algorithm>

namespace weft::cuda {
namespace {

/// No row lies so far from another, and sums of three such distances have 32 bits.
constexpr std::int64_t far = 1 << 29;
int distance(std::int64_t rows) { return int(std::clamp(rows, -far, far)); }

}  // namespace

Heads heads_of(const Tensor& t) {
  Heads out;
  out.one = rows_of(t);
  const int rank = t.rank();
  out.s = t.stride(0);
  out.b = t.stride(1);
  out.g = t.stride(2);
  out.r = rank == 5 ? t.stride(3) : 0;
  return out;
}

Attend attend(const Attended& in, const AttentionArgs& how) {
  Attend out{};
  out.q = heads_of(in.q);
  out.k = heads_of(in.k);
  out.v = heads_of(in.v);
  out.sq = int(in.q.dim(0));
  out.sk = int(in.k.dim(0));
  out.batch = int(in.q.dim(1));
  out.groups = int(in.q.dim(2));
  out.heads = int(in.q.dim(3));
  out.scale = how.scale;
  out.unit = how.scale * log2_e;
  out.cap = how.cap * log2_e;
  out.causal = how.mask == Mask::causal;
  out.diagonal = distance(how.diagonal);
  out.window = distance(how.window);
  if (how.query_segments) {
    out.query_segments = static_cast<const std::int32_t*>(place_of(how.query_segments));
    out.key_segments = static_cast<const std::int32_t*>(place_of(how.key_segments));
    out.query_line = int(how.query_segments.stride(0));
    out.key_line = int(how.key_segments.stride(0));
  }
  if (how.bias) {
    out.bias = elements<float>(how.bias);
    out.distances = how.bias.dim(1);
    out.bias0 = how.bias0;
  }
  if (how.dropout > 0) {
    out.samples = elements<std::int64_t>(how.samples);
    out.address = how.at;
    out.threshold = share(how.dropout);
    out.factor = 1 / (1 - how.dropout);
    out.head0 = how.head0;
    out.query0 = how.query0;
    out.key0 = how.key0;
  }
  return out;
}

}  // namespace weft::cuda
