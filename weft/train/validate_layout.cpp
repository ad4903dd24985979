// Rules of the layout over ranks.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/model/kinds.h"
#include "weft/nn/sum_rules.h"
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

void share_out(TrainConfig& c, int world) {
  ParallelConfig& p = c.parallel;
  const std::int64_t model = std::int64_t{p.tp} * p.pp * p.cp;
  if (model > 1'000'000)
    fail(Kind::usage, "tensor ", p.tp, " times pipeline ", p.pp, " times context ", p.cp, " is ", model,
         " ranks, more than anybody has");
  if (world == 0) world = c.run.ranks > 0 ? c.run.ranks : int(model);
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

void context(const TrainConfig& c) {
  const ParallelConfig& p = c.parallel;
  const std::vector<int>& levels = p.context_levels;
  if (!p.context_layers.empty() && std::ssize(p.context_layers) != c.model.layers + c.model.decoder_layers)
    fail(Kind::usage, "{parallel.context} has ", p.context_layers.size(), " words, the model ",
         c.model.layers, " layers: give one for all, or one for each");
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

/// What layers and sequences allow is the family's to say.
void layers(TrainConfig& c) {
  kind_of(c.model).check_cut(c.model, cut_over(c.parallel));
  if (c.parallel.tp == 1) c.parallel.sequence = false;
}

bool uneven(const ParallelConfig& p) { return p.first_stage_layers > 0 || p.last_stage_layers > 0; }

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

/// How many stages a rank holds, however that was said.
int chunks_of(const TrainConfig& c, int layers) {
  const ParallelConfig& p = c.parallel;
  if (p.virtual_stage_layers > 0) {
    if (layers % p.pp != 0 || layers / p.pp % p.virtual_stage_layers != 0)
      fail(Kind::usage, layers, " layers over ", p.pp, " ranks cannot be cut into stages of ",
           p.virtual_stage_layers);
    return layers / p.pp / p.virtual_stage_layers;
  }
  if (!p.layout.empty())
    return int(cut_stages(c.model.layers + c.model.decoder_layers, {.ranks = p.pp, .layout = p.layout})
                   .size()) /
           p.pp;
  return p.schedule == "zb-v" && p.virtual_stages <= 1 ? 2 : p.virtual_stages;
}

void stages(TrainConfig& c) {
  ParallelConfig& p = c.parallel;
  one_way_to_cut(p);
  const int layers = c.model.layers + c.model.decoder_layers + p.count_embedding + p.count_loss;
  p.virtual_stages = chunks_of(c, layers);
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
  (void)stages_of(kind_of(c.model), c.model, c.parallel);
}

bool power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

// Every rank owns whole sub-trees of the sums: eighths of what tensor-parallel ranks cut, halves of halves of
// a batch.
void exact_units(const TrainConfig& c) {
  const ParallelConfig& p = c.parallel;
  const ModelConfig& m = c.model;
  if (!m.exact) return;
  if (exact_slabs % p.tp != 0)
    fail(Kind::usage, "{model.exact} adds eighths, which ", p.tp,
         " tensor-parallel ranks cannot share: take 1, 2, 4 or 8");
  if (exact_slabs % (p.tp * p.cp) != 0)
    fail(Kind::usage, "{model.exact} adds eighths of the vocabulary, which ", p.tp, " tensor-parallel times ",
         p.cp, " context-parallel ranks cannot share: take 1, 2, 4 or 8 in all");
  if (!power_of_two(p.dp))
    fail(Kind::usage, "{model.exact} halves a batch again and again, which ", p.dp,
         " data-parallel ranks cannot share: take a power of two");
  for (const auto& [width, what] : kind_of(m).exact_widths(m))
    if (width % exact_slabs != 0)
      fail(Kind::usage, "{model.exact} adds eighths: ", what, " ", width, " is not a multiple of ",
           exact_slabs);
}

}  // namespace

void validate::layout(TrainConfig& c, int world) {
  degrees(c.parallel);
  share_out(c, world);
  context(c);
  layers(c);
  stages(c);
  exact_units(c);
  const ParallelConfig& p = c.parallel;
  if (p.bucket_elements < 0)
    fail(Kind::usage, "{parallel.bucket_elements} ", p.bucket_elements, " is not positive");
  if (p.buckets < 0) fail(Kind::usage, "{parallel.buckets} ", p.buckets, " is not positive");
}

}  // namespace weft
