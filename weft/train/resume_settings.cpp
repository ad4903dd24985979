// Two listings of the same fields, side by side.
#include "weft/train/resume_settings.h"

#include <functional>
#include <tuple>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/format.h"
#include "weft/train/ranks.h"
#include "weft/train/save_describe.h"

namespace weft {
namespace {

std::string spelled(const Field& field) {
  const auto words = field.write();
  return words.empty() ? "unset" : join(words, " ");
}

/// "model.layers is 4 there and 2 here", for every field that `wanted` takes and that differs.
template <class Config>
std::vector<std::string> differences(const Config& saved, const Config& given,
                                     const std::function<bool(OnResume)>& wanted) {
  Config there = saved, here = given;  // Fields point into what they list
  const Fields before(there), now(here);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < before.all().size(); ++i) {
    const Field& a = *before.all()[i];
    const Field& b = *now.all()[i];
    if (!wanted(a.on_resume()) || a.write() == b.write()) continue;
    out.push_back(text(a.path(), " is ", spelled(a), " there and ", spelled(b), " here"));
  }
  return out;
}

/// What one-bit messages left out is of ranks, and another layout has others.
bool begins_without_errors(const RunFacts& facts, const OptimizerConfig& o, const ParallelConfig& parallel) {
  const bool speaks = o.kind == OptimizerKind::zerooneadam || facts.run.updates + 1 >= o.onebit.freeze;
  return speaks_in_one_bit(o.kind) && speaks && !same_ranks(facts, parallel, o.kind);
}

/// Between layouts, sums are rounded in another order.
constexpr double rounding_of_floats = 2e-4, rounding_of_halves = 1e-2;

void must_read_the_same_samples(const RunFacts& facts, const TrainConfig& config, const std::string& who) {
  const TrainConfig& was = facts.configuration;
  if (config.checkpoint.load_random && facts.run.seed && *facts.run.seed != config.run.seed)
    fail(Kind::usage, who, ": its seed is ", *facts.run.seed, " and {run.seed} ", config.run.seed,
         " is asked for: leave {run.seed} out, or add {checkpoint.load_random=false}");
  const bool recut =
      facts.layout.dp != sample_ranks(config.parallel) || was.batch.micro != config.batch.micro;
  if (config.data.order == SampleOrder::cyclic && facts.run.consumed_samples > 0 && recut)
    fail(Kind::usage, who, ": {data.order=cyclic} cuts every epoch by data-parallel ranks and micro batch, ",
         facts.layout.dp, " and ", was.batch.micro, " there, ", sample_ranks(config.parallel), " and ",
         config.batch.micro,
         " here: samples would come twice; keep them, or use {data.order=single} from the start");
}

}  // namespace

void must_continue(const RunFacts& facts, const TrainConfig& config, const std::string& who) {
  const std::string &was = facts.configuration.model.kind, &is = config.model.kind;
  if (was != is) fail(Kind::usage, who, ": is of a model of the family ", was, ", and ", is, " is asked for");
  const auto differ =
      differences(facts.configuration, config, [](OnResume tag) { return tag == OnResume::model; });
  if (!differ.empty())
    fail(Kind::usage, who, ": is of another model: ", join(differ, ", "),
         "; give the same flags, or {checkpoint.use_args} without them");
  must_read_the_same_samples(facts, config, who);
}

void must_agree(const RunSchedules& saved, const RunSchedules& given, const std::string& who) {
  RunSchedules there = saved;
  const bool never_moves = saved.decay.growth == DecayGrowth::constant;
  if (never_moves && given.decay.growth == DecayGrowth::constant)
    there.decay.length = given.decay.length;  // a run that was made longer moves nothing
  const auto differ = differences(there, given, [](OnResume) { return true; });
  if (differ.empty()) return;
  fail(Kind::usage, who, ": its schedules differ: ", join(differ, ", "),
       "; add {rate.resume=given} for those of the command line, or "
       "{rate.resume=checkpoint} for the checkpoint's");
}

std::string other_settings(const RunFacts& facts, const TrainConfig& config) {
  const auto differ = differences(facts.configuration, config, [](OnResume tag) { return is_told(tag); });
  return differ.empty() ? "" : "other settings than the checkpoint's: " + join(differ, ", ");
}

std::string another_model(const RunFacts& facts, const TrainConfig& config) {
  auto differ = differences(facts.configuration, config, [](OnResume tag) { return tag == OnResume::model; });
  if (config.checkpoint.upcycle)
    std::erase_if(differ, [](const std::string& word) { return word.starts_with("model.experts."); });
  if (differ.empty()) return {};
  return "the weights are those of another model, to which they meant something else: " + join(differ, ", ");
}

bool same_ranks(const RunFacts& facts, const ParallelConfig& p, OptimizerKind optimizer) {
  const ParallelConfig& was = facts.configuration.parallel;
  const auto stages = [](const ParallelConfig& c) {
    return std::tie(c.pp, c.virtual_stages, c.layout, c.first_stage_layers, c.last_stage_layers,
                    c.count_embedding, c.count_loss);
  };
  // What travels together, one-bit LAMB asks the stage.
  const bool same_stages = optimizer != OptimizerKind::onebitlamb || stages(was) == stages(p);
  return facts.layout.tp == p.tp && facts.layout.cp == p.cp && facts.layout.dp == sample_ranks(p) &&
         was.ep == p.ep && was.etp == p.etp && same_stages;
}

Kinship kinship(const RunFacts& facts, const TrainConfig& config, const std::string& from) {
  const TrainConfig& was = facts.configuration;
  const auto has = [&](const auto& wanted) { return !differences(was, config, wanted).empty(); };
  const bool exact = was.model.exact && config.model.exact && was.run.device == config.run.device;
  Kinship kin{.from = from};
  if (!exact && has([](OnResume tag) { return rounds_otherwise(tag); }))
    kin.rounding = config.model.precision == Precision::f32 ? rounding_of_floats : rounding_of_halves;
  kin.regrouped = facts.layout.dp != sample_ranks(config.parallel) || was.batch.micro != config.batch.micro;
  kin.groups_weigh = config.data.mask_eod_loss && !config.batch.per_token_loss;
  if (!config.checkpoint.load_optimizer)
    kin.another_step = "optimizer states were not loaded";
  else if (facts.run.seed != config.run.seed)
    kin.another_step = "its seed is another one, or was not saved";
  else if (begins_without_errors(facts, config.optimizer, config.parallel))
    kin.another_step = "errors of one-bit messages are those of other ranks, and start at zero";
  else
    kin.another_step =
        join(differences(was, config, [](OnResume tag) { return tag == OnResume::step; }), ", ");
  return kin;
}

}  // namespace weft
