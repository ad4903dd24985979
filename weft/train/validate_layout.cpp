// Rules of the layout over ranks.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/model/kinds.h"
#include "weft/nn/sum_rules.h"
#include "weft/train/ranks.h"
#include "weft/train/stages.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

void degrees(const ParallelConfig& p) {
  const auto positive = [](int degree, std::string_view flag) {
    if (degree < 1) fail(Kind::usage, flag, " ", degree, " is not at least 1");
  };
  positive(p.tp, "{parallel.tp}");
  positive(p.pp, "{parallel.pp}");
  positive(p.cp, "{parallel.cp}");
  if (p.zero < 0 || p.zero > 3) fail(Kind::usage, "{parallel.zero} ", p.zero, " is not 0, 1, 2 or 3");
}

/// world 0: as many ranks as the layout needs.
void share_out(ParallelConfig& p, int world) {
  const std::int64_t model = std::int64_t{p.tp} * p.pp * p.cp;
  if (model > 1'000'000)
    fail(Kind::usage, "tensor ", p.tp, " times pipeline ", p.pp, " times context ", p.cp, " is ", model,
         " ranks, more than anybody has");
  if (world <= 0) world = int(model);
  if (world % model != 0)
    fail(Kind::usage, world, " ranks cannot be shared out: tensor ", p.tp, " times pipeline ", p.pp,
         " times context ", p.cp, " is ", model, "; take a multiple of ", model, " ranks");
  p.dp = int(world / model);
}

bool two_levels(const ParallelConfig& p) {
  const auto& layers = p.context_layers;
  return p.context == ContextForm::two_levels ||
         std::find(layers.begin(), layers.end(), ContextForm::two_levels) != layers.end();
}

void context(const ParallelConfig& p, const ModelConfig& m) {
  const std::vector<int>& levels = p.context_levels;
  if (!p.context_layers.empty() && std::ssize(p.context_layers) != m.layers + m.decoder_layers)
    fail(Kind::usage, "{parallel.context} has ", p.context_layers.size(), " words, the model ", m.layers,
         " layers: give one for all, or one for each");
  if (two_levels(p) && p.cp > 1 && levels.empty())
    fail(Kind::usage, "{parallel.context=two_levels} needs {parallel.context_levels}: how many ranks ",
         "trade heads, and how many rings go on");
  if (levels.empty()) return;
  if (levels.size() != 2)
    fail(Kind::usage, "{parallel.context_levels} has ", levels.size(), " numbers, a2a+p2p has two levels");
  if (std::int64_t{levels[0]} * levels[1] != p.cp)
    fail(Kind::usage, "{parallel.context_levels} ", levels[0], " ", levels[1], " is ",
         std::int64_t{levels[0]} * levels[1], " ranks, {parallel.cp} ", p.cp);
}

/// Experts take the tokens that a rank has in as many parts as there are tensor-parallel ranks.
void tokens_of_experts(const ModelConfig& m, const ParallelConfig& p) {
  if (m.experts.count == 0 || m.sequence / p.cp % p.tp == 0) return;
  fail(Kind::usage, "experts share out the ", m.sequence / p.cp, " tokens of a sequence that a rank has, ",
       "which ", p.tp, " tensor-parallel ranks cannot");
}

/// What layers and sequences allow is the family's to say.
void layers(ParallelConfig& p, const ModelConfig& m) {
  kind_of(m).check_cut(m, cut_over(p));
  if (p.tp == 1) p.sequence = false;
  if (const bool cut = m.recompute.cut && m.recompute.what == Recompute::full && !p.sequence;
      cut && m.hidden % p.tp != 0)
    fail(Kind::usage, "{model.recompute.cut} shares {model.hidden} ", m.hidden, " out among {parallel.tp} ",
         p.tp, " ranks, and it is no multiple of that: leave it out");
}

// Experts have a view of the ranks of their own.
void experts(ParallelConfig& p, const ModelConfig& m) {
  if (m.experts.count == 0) {
    if (p.ep > 1) fail(Kind::usage, "{parallel.ep} ", p.ep, " shares experts out, and the model has none");
    p.etp = 0;
    return;
  }
  if (p.etp == 0) p.etp = p.tp;
  if (const int ranks = stage_ranks(p); p.ep > 0 && p.etp > 0 && ranks % (p.ep * p.etp) != 0)
    fail(Kind::usage, "the ", ranks, " ranks of a pipeline stage (tensor ", p.tp, ", context ", p.cp,
         ", data ", p.dp, ") cannot be cut into {parallel.ep} ", p.ep, " times {parallel.etp} ", p.etp,
         ": take degrees whose product divides ", ranks);
  (void)layout_of(p);
  const ExpertsConfig& x = m.experts;
  if (x.count % p.ep != 0)
    fail(Kind::usage, x.count, " experts cannot be shared by {parallel.ep} ", p.ep, " ranks");
  if (x.ffn_hidden % p.etp != 0)
    fail(Kind::usage, "an expert's width ", x.ffn_hidden, " cannot be shared by {parallel.etp} ", p.etp,
         " ranks");
  if (p.etp > 1 && has_mlp_bias(m))
    fail(Kind::usage, "experts with biases are not cut: take {parallel.etp} 1, or {model.linear_bias=false}");
  if (x.beside() % p.tp != 0)
    fail(Kind::usage, "the shared experts' width ", x.beside(), " cannot be shared by ", p.tp,
         " tensor-parallel ranks");
  tokens_of_experts(m, p);
  const std::int64_t meet = m.exact ? std::max(p.ep * p.etp / (p.tp * p.cp), 1) : 1;
  if (std::int64_t{x.count / p.ep} * meet > most_experts_here)
    fail(Kind::usage, x.count / p.ep, " experts of a rank",
         meet > 1 ? " times the sequences that meet there, " : "", meet > 1 ? std::to_string(meet) : "",
         " are more than ", most_experts_here, ": take a larger {parallel.ep}");
  if (std::int64_t{p.ep} * p.etp > most_expert_ranks)
    fail(Kind::usage, "{parallel.ep} times {parallel.etp}, ", std::int64_t{p.ep} * p.etp, ", is more than ",
         most_expert_ranks);
}

// Who computes what and when, and no number.
void beside_experts(const ParallelConfig& p, const ModelConfig& m) {
  if (p.delay_weight_grads && !p.overlap_experts)
    fail(Kind::usage, "{parallel.delay_weight_grads} fills the time in which rows of experts travel, and ",
         "needs {parallel.overlap_experts}");
  if (!p.overlap_experts) return;
  if (m.experts.count == 0)
    fail(Kind::usage, "{parallel.overlap_experts}: the model has no experts, whose rows could travel");
  if (p.ep * p.etp == 1)
    fail(Kind::usage, "{parallel.overlap_experts}: every rank holds all experts whole, so no rows travel: ",
         "take {parallel.ep} 2 or more");
  (void)schedule_of(p, p.pp);
}

bool uneven(const ParallelConfig& p) { return p.first_stage_layers > 0 || p.last_stage_layers > 0; }

bool power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

void one_way_to_cut(const ParallelConfig& p) {
  const int virtually = (p.virtual_stage_layers > 0) + (p.virtual_stages > 1);
  if (virtually + !p.layout.empty() > 1 || (uneven(p) && (p.virtual_stage_layers > 0 || !p.layout.empty())))
    fail(Kind::usage, "stages can be cut in one way only: by {parallel.virtual_stage_layers}, ",
         "{parallel.virtual_stages}, {parallel.layout}, or an uneven first and "
         "last stage");
  const bool counted = p.count_embedding || p.count_loss;
  if (counted && !p.layout.empty())
    fail(Kind::usage, "{parallel.layout} says where embedding and output stand: leave ",
         "{parallel.count_embedding} and {parallel.count_loss} out");
}

/// Before anybody makes a schedule of them. Embedding and output layer may have stages of their own.
void enough_layers(const ParallelConfig& p, int layers) {
  if (p.layout.empty() && p.pp > layers + 2)
    fail(Kind::usage, layers, " layers, an embedding and an output layer cannot be cut into {parallel.pp} ",
         p.pp, " stages");
}

/// How many stages a rank holds, however that was said.
int chunks_of(const ParallelConfig& p, const ModelConfig& m, int layers) {
  if (p.virtual_stage_layers > 0) {
    if (layers % p.pp != 0 || layers / p.pp % p.virtual_stage_layers != 0)
      fail(Kind::usage, layers, " layers over ", p.pp, " ranks cannot be cut into stages of ",
           p.virtual_stage_layers);
    return layers / p.pp / p.virtual_stage_layers;
  }
  if (!p.layout.empty())
    return int(cut_stages(m.layers + m.decoder_layers,
                          {.ranks = p.pp, .layout = p.layout, .ahead = m.ahead.depths})
                   .size()) /
           p.pp;
  return p.schedule == "zb-v" && p.virtual_stages <= 1 ? 2 : p.virtual_stages;
}

void stages(ParallelConfig& p, const ModelConfig& m) {
  one_way_to_cut(p);
  const int layers = m.layers + m.decoder_layers + p.count_embedding + p.count_loss;
  enough_layers(p, m.layers + m.decoder_layers + m.ahead.depths);
  p.virtual_stages = chunks_of(p, m, layers);
  const bool many = p.virtual_stages > 1;
  if (many && p.pp < 2) fail(Kind::usage, "virtual stages need {parallel.pp} 2 or more, found ", p.pp);
  if (many && !uneven(p) && p.layout.empty() && layers % (p.pp * p.virtual_stages) != 0)
    fail(Kind::usage, layers, " layers cannot be shared by ", p.pp, " ranks of ", p.virtual_stages,
         " virtual stages");
  if (p.microbatch_group > 0 && !many)
    fail(Kind::usage, "{parallel.microbatch_group} ", p.microbatch_group,
         " needs virtual stages: {parallel.virtual_stages}");
  if (p.pp == 1 && (uneven(p) || !p.schedule.empty()))
    fail(Kind::usage, uneven(p) ? "an uneven first or last stage" : "{parallel.schedule}",
         " needs {parallel.pp} 2 or more, found 1");
  (void)stages_of(kind_of(m), m, p);
}

// A group of one rank has nobody to share with.
void alone_in_groups(ParallelConfig& p) {
  if (p.zero == 0 || p.shard_groups == 1 || p.shard_groups != data_ranks(p)) return;
  p.zero = 0;
  p.shard_groups = 1;
}

// Groups hold the same shares: all of them are as large, for experts too.
void groups(const ParallelConfig& p, bool exact) {
  if (p.shard_groups == 1) return;
  const int ranks = data_ranks(p);
  if (p.zero == 0)
    fail(Kind::usage, "{parallel.shard_groups} ", p.shard_groups,
         " needs {parallel.zero}: what groups cut up");
  if (ranks % p.shard_groups != 0)
    fail(Kind::usage, ranks, " data-parallel ranks are no {parallel.shard_groups} ", p.shard_groups,
         " groups");
  const ParallelLayout layout = layout_of(p);
  if (layout.has(View::experts) && layout.degree(Axis::edp) % p.shard_groups != 0)
    fail(Kind::usage, layout.degree(Axis::edp),
         " ranks that hold the same experts are no {parallel.shard_groups} ", p.shard_groups, " groups");
  if (exact && !power_of_two(p.shard_groups))
    fail(Kind::usage, "{model.exact} halves a batch again and again, which {parallel.shard_groups} ",
         p.shard_groups, " cannot share: take a power of two");
}

// Ranks near each other are some of those that cut weights up, and as many everywhere.
void near_ranks(ParallelConfig& p) {
  if (p.near_ranks == 1) p.near_ranks = 0;
  if (p.near_ranks == 0) return;
  if (p.zero < 3)
    fail(Kind::usage, "{parallel.near_ranks} ", p.near_ranks, " needs {parallel.zero} 3: cut weights");
  const int ranks = exact(data_ranks(p), p.shard_groups);
  if (p.near_ranks >= ranks || ranks % p.near_ranks != 0)
    fail(Kind::usage, "{parallel.near_ranks} ", p.near_ranks, " are no equal parts of the ", ranks,
         " ranks that cut weights up");
  const ParallelLayout layout = layout_of(p);
  if (!layout.has(View::experts)) return;
  if (const int same = layout.degree(Axis::edp) / p.shard_groups; same % p.near_ranks != 0)
    fail(Kind::usage, "{parallel.near_ranks} ", p.near_ranks, " are no equal parts of the ", same,
         " ranks that cut an expert up");
}

// What is rounded together is what a rank holds together.
void small_integers(const ParallelConfig& p, bool exact) {
  const WireConfig& w = p.wire;
  if (w.weights && p.zero < 3)
    fail(Kind::usage, "{parallel.wire.weights} needs {parallel.zero} 3: cut weights");
  if (w.gradients && p.zero < 2)
    fail(Kind::usage, "{parallel.wire.gradients} needs {parallel.zero} 2 or 3: cut gradients");
  if (exact && (w.weights || w.gradients))
    fail(Kind::usage, w.weights ? "{parallel.wire.weights}" : "{parallel.wire.gradients}",
         " rounds in blocks that depend on the layout, and {model.exact} keeps all layouts alike: leave one "
         "of "
         "them out");
  const auto even = [](std::int64_t block, std::string_view flag) {
    if (block < 2 || block > 65536 || block % 2 != 0)
      fail(Kind::usage, flag, " ", block, " is no even number from 2 to 65536");
  };
  even(w.weight_block, "{parallel.wire.weight_block}");
  even(w.gradient_block, "{parallel.wire.gradient_block}");
}

// Every rank owns whole sub-trees of the sums: eighths of what tensor-parallel ranks cut, halves of halves of
// a batch.
void exact_units(const ParallelConfig& p, const ModelConfig& m) {
  if (!m.exact) return;
  if (exact_slabs % p.tp != 0)
    fail(Kind::usage, "{model.exact} adds eighths, which ", p.tp,
         " tensor-parallel ranks cannot share: take 1, 2, 4 or 8");
  if (exact_slabs % (p.tp * p.cp) != 0)
    fail(Kind::usage, "{model.exact} adds eighths of the vocabulary, which ", p.tp, " tensor-parallel times ",
         p.cp, " context-parallel ranks cannot share: take 1, 2, 4 or 8 in all");
  if (!power_of_two(sample_ranks(p)))
    fail(Kind::usage, "{model.exact} halves a batch again and again, which ", sample_ranks(p),
         " data-parallel ranks cannot share: take a power of two");
  if (m.experts.count > 0 && exact_slabs % p.etp != 0)
    fail(Kind::usage, "{model.exact} adds eighths of an expert, which {parallel.etp} ", p.etp,
         " ranks cannot share: take 1, 2, 4 or 8");
  if (m.experts.count > 0 && !power_of_two(p.ep))
    fail(Kind::usage, "{model.exact} halves a batch again and again, and sequences meet on {parallel.ep} ",
         p.ep, " ranks: take a power of two");
  for (const auto& [width, what] : kind_of(m).exact_widths(m))
    if (width % exact_slabs != 0)
      fail(Kind::usage, "{model.exact} adds eighths: ", what, " ", width, " is not a multiple of ",
           exact_slabs);
}

}  // namespace

void validate::sequence(const ModelConfig& model, const ParallelConfig& parallel) {
  kind_of(model).check_cut(model, cut_over(parallel));
  tokens_of_experts(model, parallel);
}

void validate::layout(TrainConfig& c, int world) {
  ParallelConfig& p = c.parallel;
  const ModelConfig& m = c.model;
  degrees(p);
  share_out(p, world > 0 ? world : c.run.ranks);
  context(p, m);
  layers(p, m);
  experts(p, m);
  stages(p, m);
  beside_experts(p, m);
  alone_in_groups(p);
  groups(p, m.exact);
  near_ranks(p);
  small_integers(p, m.exact);
  exact_units(p, m);
  if (p.bucket_elements < 0)
    fail(Kind::usage, "{parallel.bucket_elements} ", p.bucket_elements, " is not positive");
  if (p.buckets < 0) fail(Kind::usage, "{parallel.buckets} ", p.buckets, " is not positive");
}

}  // namespace weft
