// The rules of a run, in the order a person would ask for them.
#include "weft/train/validate.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/data/masked_dataset.h"
#include "weft/model/kinds.h"
#include "weft/ops/attention_limits.h"
#include "weft/optim/rules.h"
#include "weft/train/ranks.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

/// A text keeps most of its words, and those that it keeps are not guessed. In exact mode sums have all
/// tokens.
std::int64_t most_guesses(const TrainConfig& c) {
  const Samples samples = kind_of(c.model).samples(c.model);
  if (samples.of != Samples::Of::hidden_words || c.model.exact) return 0;
  const data::MaskedRules rules{.model = data::MaskedModel::bert, .sequence_length = samples.sequence};
  return std::max<std::int64_t>(
      1, data::most_hidden(rules.max_length(), {.probability = c.data.masking.probability}));
}

/// Each time some are made their words' gradient is read and written: of 50,000 words a GPU takes as long for
/// that as for a product of 1,024 rows. A processor's caches want few.
std::int64_t logits_at_once(std::string_view device) { return device.starts_with("cuda") ? 4096 : 1024; }

void within(double value, double least, double most, std::string_view flag) {
  if (!(value >= least && value <= most))
    fail(Kind::usage, flag, " ", value, " is not between ", least, " and ", most);
}

void fraction(double value, std::string_view flag) {
  if (!(value >= 0 && value < 1)) fail(Kind::usage, flag, " ", value, " is not at least 0 and below 1");
}

void not_negative(double value, std::string_view flag) {
  if (!(value >= 0) || std::isinf(value)) fail(Kind::usage, flag, " ", value, " is not 0 or more");
}

std::string_view word_of(OptimizerKind kind) { return words(kind)[std::size_t(kind)]; }

void moments(const OptimizerConfig& o) {
  (void)rule_of(o.kind);
  const bool trusts = o.kind == OptimizerKind::lamb || o.kind == OptimizerKind::onebitlamb;
  if (trusts && !(o.lamb.least <= o.lamb.most))
    fail(Kind::usage, "{optimizer.lamb.least} ", o.lamb.least, " is above {optimizer.lamb.most} ",
         o.lamb.most);
  if (o.any_moment_type && o.kind != OptimizerKind::adam)
    fail(Kind::usage, "{optimizer.any_moment_type} is for {optimizer.kind=adam}, not ", word_of(o.kind));
  if (o.any_moment_type) return;
  const auto must_be_f32 = [](MomentType type, std::string_view flag) {
    if (type != MomentType::fp32)
      fail(Kind::usage, flag, " ", words(type)[std::size_t(type)], " needs {optimizer.any_moment_type}");
  };
  must_be_f32(o.first_moment, "{optimizer.first_moment}");
  must_be_f32(o.second_moment, "{optimizer.second_moment}");
}

void muon(const MuonConfig& m, const ParallelConfig& p, const ModelConfig& model) {
  fraction(m.momentum, "{optimizer.muon.momentum}");
  if (m.rounds == MuonSteps::quintic && (m.steps < 1 || m.steps % 5 != 0))
    fail(Kind::usage, "{optimizer.muon.steps} ", m.steps,
         " is not a multiple of 5, the steps of {optimizer.muon.rounds=quintic}");
  if (p.zero > 1)
    fail(Kind::usage, "{optimizer.kind=muon} needs whole gradients: {parallel.zero} ", p.zero,
         " cuts them; take {parallel.zero=1}");
  if (p.tp == 1 || m.ranks == MuonRanks::duplicated) return;
  const std::string_view mode = words(m.ranks)[std::size_t(m.ranks)];
  if (model.exact)
    fail(Kind::usage, "{model.exact}: the bits of {optimizer.muon.ranks} ", mode,
         " depend on the tensor-parallel ranks; take duplicated");
  if (model.groups < p.tp)
    fail(Kind::usage, "{optimizer.muon.ranks} ", mode, " takes every row of a matrix on one rank only, and ",
         p.tp, " tensor-parallel ranks share ", model.groups, " key groups; take duplicated");
}

void zero_one(const ZeroOneConfig& z) {
  for (const auto& [value, flag] : {std::pair(z.freeze, "{optimizer.zeroone.freeze}"),
                                    {z.variance_steps, "{optimizer.zeroone.variance_steps}"},
                                    {z.local_steps, "{optimizer.zeroone.local_steps}"},
                                    {z.most_local, "{optimizer.zeroone.most_local}"}})
    if (value < 1) fail(Kind::usage, flag, " ", value, " is not at least 1");
}

void one_bit(const OptimizerConfig& o, const ParallelConfig& p, const ModelConfig& model) {
  const std::string who = text("{optimizer.kind=", word_of(o.kind), "}");
  if (p.zero > 0)
    fail(Kind::usage, who, " keeps whole momenta on every rank, and {parallel.zero} ", p.zero,
         " cuts them: leave one of them out");
  const int readers = data_ranks(p);
  if (model.exact && readers > 1)
    fail(Kind::usage, "{model.exact}: what ", who, " rounds to one bit depends on ", readers,
         " ranks that read other samples: leave one of them out");
  if (readers > 1 && model.groups < p.tp)
    fail(Kind::usage, who, " would round a key that tensor-parallel ranks share in as many ways, and ", p.tp,
         " of them share ", model.groups, " key groups: take no more ranks than groups");
  if (o.kind == OptimizerKind::zerooneadam) return zero_one(o.zeroone);
  if (o.onebit.freeze < 1)
    fail(Kind::usage, "{optimizer.onebit.freeze} ", o.onebit.freeze, " is not at least 1");
  if (o.kind != OptimizerKind::onebitlamb) return;
  if (o.onebit.freeze < 2)
    fail(Kind::usage, "{optimizer.onebit.freeze} 1 leaves ", who, " no step to learn trust ratios in");
  if (!(o.onebit.least_factor <= o.onebit.most_factor))
    fail(Kind::usage, "{optimizer.onebit.least_factor} ", o.onebit.least_factor,
         " is above {optimizer.onebit.most_factor} ", o.onebit.most_factor);
}

// Channels turn two by two.
void pairs(const ModelConfig& m) {
  const auto turning = std::int64_t(double(turning_channels(m)) * m.rotary.percent);
  if (turning % 2 != 0)
    fail(Kind::usage, "rotary positions turn channels in pairs, and ", turning, " of a head's ", m.channels,
         " would turn: {model.channels} and {model.rotary.percent} must give an even number");
}

void numbered_for_dropout(const ModelConfig& m) {
  if (m.attention_dropout == 0) return;
  const auto at_most = [&](std::int64_t value, std::int64_t most, std::string_view flag) {
    if (value > most)
      fail(Kind::usage, flag, " ", value, " is more than the ", most,
           " that dropout of attention can number: set {model.attention_dropout} to 0");
  };
  at_most(m.sequence, ops::most_dropout_positions, "{model.sequence}");
  at_most(m.decoder_sequence, ops::most_dropout_positions, "{model.decoder_sequence}");
  at_most(m.heads, ops::most_dropout_heads, "{model.heads}");
}

/// Ranks that read other samples round what they send one another.
void small_integers(const ParallelConfig& p, std::vector<std::string>& notices) {
  if (data_ranks(p) == 1) return;
  if (p.wire.weights)
    notices.push_back(text("{parallel.wire.weights}: matrices travel as int8 with a scale for each ",
                           p.wire.weight_block, " of them, and layers read what that leaves; masters, and ",
                           "checkpoints, are not rounded"));
  if (p.wire.gradients)
    notices.push_back(
        text("{parallel.wire.gradients}: gradients of matrices travel as int4 with a scale for ", "each ",
             p.wire.gradient_block, " of them",
             p.near_ranks > 1 ? ", twice: to near ranks and, added, to the others" : "",
             ", and are added in f32"));
}

void profile(const ProfileConfig& p, int world) {
  if (!p.on) return;
  if (p.last <= p.after)
    fail(Kind::usage, "{profile.last} ", p.last, " is not behind {profile.after} ", p.after,
         ": a profiler would be shown no step");
  for (const std::int64_t rank : p.ranks)
    if (world > 0 && rank >= world)
      fail(Kind::usage, "{profile.ranks} ", rank, ": ranks are counted from 0, and the last is ", world - 1);
}

}  // namespace

std::vector<std::string> complete(TrainConfig& c, int world) {
  std::vector<std::string> notices;
  validate::model(c, notices);
  validate::layout(c, world);
  validate::batches(c);
  validate::length(c);
  validate::left_out(c);  // before whoever counts a run's steps, and with them the tokens that layers see
  validate::curriculum(c);
  validate::difficulty(c);
  validate::evaluation(c);
  validate::rates(c);
  validate::optimizer(c);
  validate::offload(c, notices);
  validate::scores(c);
  validate::precision(c, notices);
  validate::blocks(c, notices);
  validate::guard(c);
  validate::data(c, notices);
  validate::checkpoint(c);
  small_integers(c.parallel, notices);
  profile(c.profile, layout_of(c.parallel).world());
  within(c.log.timing_level, 0, 2, "{log.timing_level}");
  return notices;
}

void validate::model(TrainConfig& c, std::vector<std::string>& notices) {
  ModelConfig& m = c.model;
  complete(m);
  m.most_guesses = most_guesses(c);
  m.logits_at_once = logits_at_once(c.run.device);
  fraction(m.hidden_dropout, "{model.hidden_dropout}");
  fraction(m.attention_dropout, "{model.attention_dropout}");
  if (!c.eval.skip_train) numbered_for_dropout(m);
  within(m.rotary.percent, 0, 1, "{model.rotary.percent}");
  if (!(m.norm_epsilon > 0))
    fail(Kind::usage, "{model.norm_epsilon} ", m.norm_epsilon, " is not greater than 0");
  not_negative(m.init.std, "{model.init.std}");
  if (turns_channels(m) && !(m.rotary.base > 0))
    fail(Kind::usage, "{model.rotary.base} ", m.rotary.base, " is not greater than 0");
  if (turns_channels(m)) pairs(m);
  const bool stretched = m.rotary.scaling != RotaryScaling::none;
  if (stretched && !turns_channels(m))
    fail(Kind::usage,
         "positions are not rotary, so there are no angles to stretch: add {model.positions=rotary}");
  if (m.rotary.original_positions == 0) {
    if (m.rotary.scaling == RotaryScaling::llama3) m.rotary.original_positions = m.max_positions;
    if (m.rotary.scaling == RotaryScaling::yarn) m.rotary.original_positions = 4096;  // as Megatron does
  }
  if (m.rotary.scaling == RotaryScaling::yarn && m.rotary.factor == 1)
    notices.push_back(
        "no effect here: {model.rotary.scaling=yarn} (by a factor of 1 nothing is stretched, and angles "
        "are "
        "those of rope: {model.rotary.factor} says how many times longer than trained)");
  if (m.recompute.what == Recompute::selective && m.recompute.modules.empty())
    m.recompute.modules = {RecomputeModule::core_attention};
  if (m.recompute.what != Recompute::selective && !m.recompute.modules.empty())
    fail(Kind::usage, "{model.recompute.modules} needs {model.recompute.what=selective}");
  if (std::ranges::count(m.recompute.modules, RecomputeModule::latent_heads) > 0 && !m.latent.on)
    fail(Kind::usage,
         "{model.recompute.modules} names heads that are made of latents: add {model.latent.on}");
  if (std::ranges::count(m.recompute.modules, RecomputeModule::experts) > 0 && m.experts.count == 0)
    fail(Kind::usage, "{model.recompute.modules} names experts, and the model has none");
  if (std::ranges::count(m.recompute.modules, RecomputeModule::shared_experts) > 0 && m.experts.beside() == 0)
    fail(Kind::usage, "{model.recompute.modules} names shared experts, and the model has none");
  const int layers = m.layers + m.decoder_layers;
  if (m.recompute.what == Recompute::full && (m.recompute.layers < 1 || m.recompute.layers > layers))
    fail(Kind::usage, "{model.recompute.layers} ", m.recompute.layers, " is not between 1 and ", layers,
         " layers");
}

void validate::optimizer(const TrainConfig& c) {
  const OptimizerConfig& o = c.optimizer;
  fraction(o.beta1, "{optimizer.beta1}");
  fraction(o.beta2, "{optimizer.beta2}");
  fraction(o.momentum, "{optimizer.momentum}");
  not_negative(o.epsilon, "{optimizer.epsilon}");
  not_negative(o.clip, "{optimizer.clip}");
  not_negative(o.weight_decay, "{optimizer.weight_decay}");
  moments(o);
  if (o.kind == OptimizerKind::muon) muon(o.muon, c.parallel, c.model);
  if (speaks_in_one_bit(o.kind)) one_bit(o, c.parallel, c.model);
  if (o.kind == OptimizerKind::zerooneadam && c.guard.replica_check_interval > 0 &&
      data_ranks(c.parallel) > 1)
    fail(Kind::usage,
         "{guard.replica_check_interval}: ranks that train by {optimizer.kind=zerooneadam} hold "
         "other weights between their meetings: leave one of them out");
  const bool both = o.weight_decay_start && o.weight_decay_end,
             none = !o.weight_decay_start && !o.weight_decay_end;
  if (o.weight_decay_growth == DecayGrowth::constant && !none)
    fail(Kind::usage,
         "{optimizer.weight_decay_start} and {optimizer.weight_decay_end} need "
         "{optimizer.weight_decay_growth} linear or cosine");
  if (o.weight_decay_growth == DecayGrowth::constant) return;
  if (!both)
    fail(Kind::usage,
         "{optimizer.weight_decay_growth} needs {optimizer.weight_decay_start} and "
         "{optimizer.weight_decay_end}");
  if (*o.weight_decay_start < 0 || *o.weight_decay_end < *o.weight_decay_start)
    fail(Kind::usage, "weight decay cannot grow from ", *o.weight_decay_start, " to ", *o.weight_decay_end);
}

namespace {

/// Other rules work in the memory of gradients, or read them as wholes.
void sums_in_bf16(const TrainConfig& c) {
  if (c.model.exact)
    fail(Kind::usage,
         "{scaling.sum_in_bf16} rounds sums that {model.exact} keeps whole: leave one of them out");
  if (c.model.precision != Precision::bf16)
    fail(Kind::usage, "{scaling.sum_in_bf16} needs {model.precision=bf16}");
  const OptimizerKind kind = c.optimizer.kind;
  if (kind != OptimizerKind::adam && kind != OptimizerKind::sgd && kind != OptimizerKind::lion)
    fail(Kind::usage, "{scaling.sum_in_bf16}: {optimizer.kind=", word_of(kind),
         "} needs gradients in f32; adam, sgd and lion do not");
}

}  // namespace

void validate::precision(TrainConfig& c, std::vector<std::string>& notices) {
  const ScalingConfig& s = c.scaling;
  const bool f16 = c.model.precision == Precision::f16;
  if (s.constant && !f16)
    notices.push_back("no effect here: {scaling.constant} (only {model.precision=f16} scales the loss)");
  if (s.constant && !(*s.constant > 0))
    fail(Kind::usage, "{scaling.constant} ", *s.constant, " is not greater than 0");
  if (f16 && !(s.initial >= s.least && s.least > 0))
    fail(Kind::usage, "{scaling.initial} ", s.initial, " is below {scaling.least} ", s.least);
  if (s.window < 1) fail(Kind::usage, "{scaling.window} ", s.window, " is not at least 1");
  if (s.hysteresis < 1) fail(Kind::usage, "{scaling.hysteresis} ", s.hysteresis, " is not at least 1");
  if (c.model.exact && s.reduce_in_bf16)
    fail(Kind::usage,
         "{scaling.reduce_in_bf16} rounds sums that {model.exact} keeps whole: leave one of them out");
  if (s.sum_in_bf16) sums_in_bf16(c);
  if (c.guard.non_finite == NonFinite::rescale && !f16)
    fail(Kind::usage,
         "{guard.non_finite} rescale needs {model.precision=f16}, the only precision with a loss scale");
  if (f16 && !s.constant) c.guard.non_finite = NonFinite::rescale;
}

void validate::guard(const TrainConfig& c) {
  if (c.guard.faults == FaultCheck::report && c.guard.rerun_interval > 0)
    fail(
        Kind::usage, "{guard.rerun_interval} ", c.guard.rerun_interval,
        " goes on with what came out twice alike, {guard.faults=report} with what comes out the second time, "
        "however far it is from the first: leave one of them out");
}

void validate::checkpoint(const TrainConfig& c) {
  const CheckpointConfig& k = c.checkpoint;
  if (!k.save.empty() && k.interval < 1)
    fail(Kind::usage, "{checkpoint.save} ", k.save,
         " needs {checkpoint.interval}: after how many steps to write");
  if (k.retain_interval > 0 && (k.interval < 1 || k.retain_interval % k.interval != 0))
    fail(Kind::usage, "{checkpoint.retain_interval} ", k.retain_interval,
         " is not a multiple of {checkpoint.interval} ", k.interval);
  if (k.step < 0) fail(Kind::usage, "{checkpoint.step} ", k.step, " is not 0 or more");
  if (k.step > 0 && k.load.empty())
    fail(Kind::usage, "{checkpoint.step} ", k.step,
         " needs {checkpoint.load}: the checkpoints to choose from");
  if (k.keep_last < 0 || k.keep_best < 0)
    fail(Kind::usage, "{checkpoint.keep_last} ", k.keep_last, " and {checkpoint.keep_best} ", k.keep_best,
         " are not 0 or more");
  if ((k.keep_last > 0 || k.keep_best > 0) && k.save.empty())
    fail(Kind::usage,
         "{checkpoint.keep_last} and {checkpoint.keep_best} need {checkpoint.save}: the checkpoints to keep");
  if (k.keep_best > 0 && (c.eval.interval < 1 || k.interval % c.eval.interval != 0))
    fail(Kind::usage, "{checkpoint.keep_best} ", k.keep_best,
         " needs a validation before every save: {checkpoint.interval} ", k.interval,
         " is not a multiple of {eval.interval} ", c.eval.interval);
  if (c.log.progress && k.save.empty())
    fail(Kind::usage, "{log.progress} needs {checkpoint.save}: the directory of its progress.txt");
  if (k.in_background && k.save.empty())
    fail(Kind::usage, "{checkpoint.in_background} needs {checkpoint.save}");
  if (k.verify && k.save.empty() && k.load.empty())
    fail(Kind::usage,
         "{checkpoint.verify} needs {checkpoint.save} or {checkpoint.load}: what to compare with");
  if (k.verify && c.eval.skip_train)
    fail(
        Kind::usage,
        "{checkpoint.verify} reads the last batch again, and {eval.skip_train} opens no samples to train on: "
        "leave one of them out");
  if (k.finetune && k.load.empty() && k.pretrained.empty())
    fail(Kind::usage, "{checkpoint.finetune} needs {checkpoint.load}: the weights to start from");
  if (k.upcycle && k.load.empty() && k.pretrained.empty())
    fail(Kind::usage,
         "{checkpoint.upcycle} needs {checkpoint.load}: the model without experts to start from");
  if (k.upcycle && c.model.experts.count == 0)
    fail(Kind::usage,
         "{checkpoint.upcycle} makes experts of MLPs, and the model has none: say "
         "{model.experts.count}");
  if (k.upcycle && c.model.experts.latent > 0)
    fail(Kind::usage,
         "{checkpoint.upcycle}: experts that work on fewer channels are no MLPs: leave "
         "{model.experts.latent} out");
  if (k.use_args && k.load.empty())
    fail(Kind::usage, "{checkpoint.use_args} needs {checkpoint.load}: the checkpoint to ask");
}

}  // namespace weft
