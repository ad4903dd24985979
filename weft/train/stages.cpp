// One place decides what a pipeline looks like; checks, runs and drawings all ask here.
#include "weft/train/stages.h"

#include <algorithm>
#include <span>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/model/experts.h"
#include "weft/model/kinds.h"
#include "weft/pipe/choose.h"

namespace weft {
namespace {

pipe::Wanted wanted_by(const ParallelConfig& p, int microbatches) {
  return {.name = p.schedule,
          .ranks = p.pp,
          .chunks = std::max(p.virtual_stages, 1),
          .microbatches = microbatches,
          .group = p.microbatch_group,
          .beside = p.overlap_experts};
}

/// Stages go round the ranks in turn: the one placement for which Megatron's flags have a meaning.
bool in_turn(std::span<const int> home, int ranks) {
  for (std::size_t i = 0; i < home.size(); ++i)
    if (home[i] != int(i) % ranks) return false;
  return true;
}

pipe::Schedule sent(pipe::Schedule schedule) {
  return pipe::beside_each_other(pipe::posted_early(pipe::with_transfers(std::move(schedule))));
}

}  // namespace

std::int64_t rows_of_a_pass(const ModelConfig& model, const BatchConfig& batch) {
  return sums_of(model).samples_of_a_pass(batch.micro);
}

std::string exact_context(const ModelConfig& model, const ParallelConfig& p) {
  if (!model.exact) return {};
  return kind_of(model).exact_notice(model, cut_over(p));
}

// The z-loss and seq_aux_loss are means over sequences of as many tokens already.
std::string exact_experts(const ModelConfig& model, const BatchConfig& batch) {
  const RouterConfig& r = model.experts.router;
  if (model.experts.count == 0 || rows_of_a_pass(model, batch) == batch.micro) return {};
  std::vector<std::string> whats;
  for (const NamedLoss& loss : balancing_losses(model))
    if (loss.name == told_as(Balancing::aux_loss)) whats.emplace_back(loss.name);
  if (r.capacity || r.capacity_evaluating) whats.emplace_back("the room of experts");
  if (r.sinkhorn()) whats.emplace_back("sinkhorn's choice");
  if (whats.empty()) return {};
  return text("exact mode: ", join(whats, " and "), whats.size() > 1 ? " are" : " is",
              " over the tokens of each sequence, as with {batch.micro} 1, whatever {batch.micro} ",
              batch.micro, " puts together");
}

std::string exact_pieces(const ModelConfig& model, const BatchConfig& batch,
                         const CurriculumConfig& curriculum) {
  const bool pieces =
      curriculum.rule.curve != data::LengthCurve::none && curriculum.form == data::ExcerptForm::reshape;
  if (!pieces || rows_of_a_pass(model, batch) == batch.micro) return {};
  return text("exact mode: pieces are those of each sample by itself, as with {batch.micro} 1, whatever ",
              "{batch.micro} ", batch.micro, " puts together");
}

CutOver cut_over(const ParallelConfig& p) {
  return {.tp = p.tp, .cp = p.cp, .sequence = p.sequence, .trading = trading_ranks(p)};
}

int trading_ranks(const ParallelConfig& p) {
  const auto of = [&](ContextForm form) {
    if (form == ContextForm::heads) return p.cp;
    return form == ContextForm::two_levels && !p.context_levels.empty() ? p.context_levels.front() : 1;
  };
  int most = p.context_layers.empty() ? of(p.context) : 1;
  for (const ContextForm form : p.context_layers) most = std::max(most, of(form));
  return most;
}

std::vector<int> homes_of(const ParallelConfig& parallel) {
  return pipe::stage_homes(wanted_by(parallel, parallel.pp));
}

ParallelLayout layout_of(const ParallelConfig& p) {
  const RankOrder order = p.order == RankOrderKind::tp_cp_ep_pp_dp
                              ? RankOrder{Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp}
                              : usual_order;
  return ParallelLayout({.tp = p.tp, .cp = p.cp, .dp = p.dp, .pp = p.pp, .ep = p.ep, .etp = p.etp}, order);
}

std::vector<StagePart> stages_of(const ModelKind& kind, const ModelConfig& model, const ParallelConfig& p) {
  const std::vector<int> home = homes_of(p);
  const bool turns = in_turn(home, p.pp);
  if (!turns && (p.first_stage_layers > 0 || p.last_stage_layers > 0))
    fail(Kind::usage, "pipeline schedule ", p.schedule,
         " does not go round the ranks in turn, so no rank's layers are the first or the last: cut them with "
         "{parallel.layout}");
  const int stages = int(home.size());
  const StageCut cut{.ranks = turns ? p.pp : stages,
                     .chunks = turns ? stages / p.pp : 1,
                     .first_layers = p.first_stage_layers,
                     .last_layers = p.last_stage_layers,
                     .count_embedding = p.count_embedding,
                     .count_loss = p.count_loss,
                     .layout = p.layout};
  std::vector<StagePart> parts = kind.cut(model, cut);
  if (int(parts.size()) != stages)
    fail(Kind::usage, "{parallel.layout} '", p.layout, "' has ", parts.size(),
         " stages, the pipeline schedule has ", stages);
  return parts;
}

pipe::Schedule schedule_of(const ParallelConfig& parallel, int microbatches) {
  return sent(pipe::make_schedule(wanted_by(parallel, microbatches)));
}

pipe::Schedule evaluation_of(const ParallelConfig& parallel, int microbatches) {
  return sent(pipe::forwards_only(homes_of(parallel), microbatches));
}

}  // namespace weft
