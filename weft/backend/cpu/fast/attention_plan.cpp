// How attention is cut: stripes of queries forward; heads backward, or chunks of keys and stripes of queries
// where there are too few heads to keep the threads busy.
#include "weft/backend/cpu/fast/attention_plan.h"

#include <algorithm>

#include "weft/backend/cpu/fast/layout.h"
#include "weft/base/error.h"

namespace weft::fast {

namespace {

// bf16 may be multiplied as pairs, where the processor has an instruction for them. Everything has room for
// it wherever it runs, so that what a run needs does not depend on the processor; most of it fits where f32
// would lie.
constexpr std::int64_t pair_depth = 32;
constexpr std::int64_t short_scores = attention_queries * attention_keys / 2;

Element element(const Tensor& t) {
  switch (t.dtype()) {
    case Dtype::f32:
      return Element::f32;
    case Dtype::bf16:
      return Element::bf16;
    case Dtype::f16:
      return Element::f16;
    default:
      fail(Kind::internal, "attention: ", t.dtype(), " is not a type that layers compute in");
  }
}

void* address(const Tensor& t) { return t.device().holds_numbers() ? t.address() : nullptr; }

AttentionSegments segments(const Tensor& t) {
  return {static_cast<const std::int32_t*>(address(t)), t.stride(0), t.stride(1)};
}

/// Queries of whole tiles, wide or narrow.
std::int64_t whole_tiles(std::int64_t queries) {
  return std::max(round_up(queries, attention_queries), round_up(queries, attention_narrow_queries));
}

/// Copies of rows lie as far apart, of queries, keys and values.
std::int64_t widest(const AttentionJob& job) { return std::max(job.d, job.d_value); }

/// Distances of so many queries, whose last tile may go beyond them, to all keys.
std::int64_t distances(const AttentionJob& job, std::int64_t queries) {
  return round_up(queries + attention_queries + job.sk, padding);
}

}  // namespace

AttentionRows attention_rows(const Tensor& t) {
  return {address(t), t.stride(0), t.stride(1), t.stride(2), t.rank() == 5 ? t.stride(3) : 0, element(t)};
}
AttentionSums attention_sums(const Tensor& lse) {
  return {static_cast<float*>(address(lse)), lse.stride(0), lse.stride(1), lse.stride(2)};
}

AttentionJob attention_job(const Attended& in, const AttentionArgs& how) {
  AttentionJob job;
  job.sq = in.q.dim(0);
  job.b = in.q.dim(1);
  job.g = in.q.dim(2);
  job.r = in.q.dim(3);
  job.d = in.q.dim(4);
  job.d_value = in.v.dim(3);
  job.sk = in.k.dim(0);
  job.q = attention_rows(in.q);
  job.k = attention_rows(in.k);
  job.v = attention_rows(in.v);
  job.scale = how.scale;
  job.cap = how.cap;
  job.causal = how.mask == Mask::causal;
  job.diagonal = how.diagonal;
  job.window = how.window;
  if (how.query_segments) {
    job.query_segments = segments(how.query_segments);
    job.key_segments = segments(how.key_segments);
  }
  if (how.bias)
    job.bias = {true, static_cast<const float*>(address(how.bias)), how.bias.stride(0), how.bias0};
  job.step = row_step(widest(job));
  return job;
}

namespace {

/// Long stripes read keys less often, as long as their queries and results stay in a core's second cache;
/// short ones keep all threads busy to the end. No bit depends on it.
std::int64_t stripe_of(const AttentionJob& job, int threads) {
  constexpr std::int64_t floats = 67584;  // of queries, and as many of results: 264 KiB each
  constexpr std::int64_t most = 6 * attention_stripe;
  const std::int64_t fitting = floats / round_up(widest(job), padding);
  const std::int64_t heads = job.b * job.g * job.r;
  const std::int64_t wanted = pieces(8 * std::int64_t(threads), heads);
  const std::int64_t long_enough = std::clamp(fitting, attention_stripe, most);
  const std::int64_t stripes =
      std::max(pieces(job.sq, long_enough), std::min(wanted, pieces(job.sq, attention_stripe)));
  return round_up(pieces(job.sq, stripes), attention_stripe);
}

}  // namespace

ForwardPlan plan_forward(const AttentionJob& job, int threads) {
  ForwardPlan plan;
  plan.stripe = stripe_of(job, threads);
  plan.stripes = pieces(job.sq, plan.stripe);
  plan.tasks = plan.stripes * job.b * job.g * job.r;
  const std::int64_t step = job.step;
  const std::int64_t queries = std::min(plan.stripe, whole_tiles(job.sq));
  const std::int64_t tile = (attention_keys + slack) * attention_queries;
  const bool pairs = job.q.type == Element::bf16;
  Layout layout;
  ForwardPlaces& at = plan.places;
  at.q = layout.take(queries * round_up(job.d, padding));
  at.rows = layout.take(attention_queries * step);
  at.k = layout.take((attention_keys + slack) * step);
  at.v = layout.take(attention_keys * step);
  at.scores = layout.take(tile);
  at.turned = pairs ? layout.take(short_scores) : 0;
  at.factor = job.dropout.wanted ? layout.take(tile) : 0;
  at.scale = layout.take(attention_queries);
  at.o = layout.take(queries * step);
  at.maximum = layout.take(queries);
  at.sum = layout.take(queries);
  at.bias = job.bias.wanted ? layout.take(distances(job, queries)) : 0;
  at.floats = layout.total();
  return plan;
}

namespace {

/// Keys whose rows and gradients fit a core's second cache together (four times so many floats), in equal
/// chunks.
std::int64_t chunk_of(const AttentionJob& job) {
  constexpr std::int64_t floats = 40960;
  const std::int64_t fitting =
      std::max(attention_keys, floats / round_up(widest(job), padding) / attention_keys * attention_keys);
  const std::int64_t keys = std::max<std::int64_t>(job.sk, 1);
  return round_up(pieces(keys, pieces(keys, std::min(fitting, 6 * attention_keys))), attention_keys);
}

BackwardPlaces backward_places(const AttentionJob& job, const BackwardPlan& plan) {
  const std::int64_t step = job.step;
  const std::int64_t tile = (attention_keys + slack) * attention_queries;
  const bool pairs = job.q.type == Element::bf16;
  const std::int64_t depth = round_up(widest(job), pair_depth);
  const std::int64_t pair_rows = round_up(attention_queries, pair_depth) / 2;
  const std::int64_t rows = std::max(attention_queries * step, pairs ? pair_rows * depth : 0);
  const std::int64_t chunk = (plan.chunk + slack) * step;
  const std::int64_t queries = plan.all > 0 ? whole_tiles(job.sq) + attention_queries : attention_stripe;
  Layout layout;
  BackwardPlaces at;
  at.q = layout.take(rows);
  at.dout = layout.take(rows);
  at.q_rows = layout.take(rows);
  at.dout_rows = layout.take(rows);
  at.rows = layout.take(rows);
  at.k = layout.take(chunk);
  at.v = layout.take(chunk);
  at.k_pairs = pairs ? layout.take(plan.chunk / 2 * depth) : 0;
  at.scores = layout.take(tile);
  at.dscores = layout.take(tile);
  for (std::int64_t* place : {&at.p_rows, &at.ds_rows, &at.ds_words, &at.turned})
    *place = pairs ? layout.take(short_scores) : 0;
  at.factor = job.dropout.wanted ? layout.take(tile) : 0;
  at.lse = layout.take(attention_queries);
  at.delta = layout.take(attention_queries);
  at.bias = job.bias.wanted ? layout.take(distances(job, job.sq)) : 0;
  at.dq = layout.take(queries * step);
  const std::int64_t keys = plan.all > 0 && job.r > 1 ? (job.sk + slack) * step : chunk;
  at.dk = layout.take(keys);
  at.dv = layout.take(keys);
  at.floats = layout.total();
  return at;
}

}  // namespace

AttentionBiasSums plan_bias_sums(const AttentionJob& job) {
  return {
      .wanted = true, .row = distances(job, attention_stripe), .stripes = pieces(job.sq, attention_stripe)};
}

BackwardPlan plan_backward(const AttentionJob& job, int threads) {
  BackwardPlan plan;
  plan.rows = job.dbias.wanted ? job.b : 1;
  plan.chunk = chunk_of(job);
  plan.chunks = pieces(job.sk, plan.chunk);
  plan.stripes = pieces(job.sq, attention_stripe);
  // Five products a head, and a thread takes whole heads; or seven, cut as finely as one likes.
  const std::int64_t heads = job.b / plan.rows * job.g;
  if (5 * pieces(heads, threads) * threads <= 7 * heads) {
    plan.all = heads;
  } else {
    plan.keys = job.b * job.g * plan.chunks;
    plan.queries = heads * job.r * plan.stripes;
  }
  plan.places = backward_places(job, plan);
  return plan;
}

}  // namespace weft::fast
