// Flags that were given and do nothing without another: each is said, with what it waits for.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/cli/dialect.h"
#include "weft/model/kinds.h"
#include "weft/train/settings.h"

namespace weft::cli {
namespace {

struct Idle {
  std::string_view path;
  bool (*idle)(const TrainConfig&);
  std::string_view why;
};

bool never_saves(const TrainConfig& c) { return c.checkpoint.save.empty(); }
bool never_loads(const TrainConfig& c) {
  return c.checkpoint.load.empty() && c.checkpoint.pretrained.empty();
}
bool no_annealing(const TrainConfig& c) { return c.rate.style != RateStyle::wsd; }
Samples::Of samples_of(const TrainConfig& c) { return kind_of(c.model).samples(c.model).of; }
bool no_hidden_words(const TrainConfig& c) { return samples_of(c) == Samples::Of::documents; }
bool no_sentences(const TrainConfig& c) { return samples_of(c) != Samples::Of::hidden_words; }
bool no_middle(const TrainConfig& c) { return !c.data.fim.on; }
bool no_events(const TrainConfig& c) { return c.log.tensorboard.empty(); }
bool no_distances(const TrainConfig& c) { return c.model.positions != Positions::relative; }
bool no_rotary(const TrainConfig& c) { return c.model.positions != Positions::rotary; }
bool not_stretched(const TrainConfig& c) { return c.model.rotary.scaling == RotaryScaling::none; }
bool not_yarn(const TrainConfig& c) { return c.model.rotary.scaling != RotaryScaling::yarn; }
bool not_llama3(const TrainConfig& c) { return c.model.rotary.scaling != RotaryScaling::llama3; }
bool no_moments(const TrainConfig& c) {
  return c.optimizer.kind == OptimizerKind::sgd || c.optimizer.kind == OptimizerKind::lion;
}
bool no_lion(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::lion; }
bool no_lamb(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::lamb; }
bool no_onebit_lamb(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::onebitlamb; }
bool no_trust(const TrainConfig& c) { return no_lamb(c) && no_onebit_lamb(c); }
bool no_zero_one(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::zerooneadam; }
bool no_offload(const TrainConfig& c) { return !c.optimizer.offload.on; }
bool no_muon(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::muon; }
bool no_muon_ranks(const TrainConfig& c) { return no_muon(c) || c.parallel.tp == 1; }
bool no_narrow_moment(const TrainConfig& c) {
  return c.optimizer.first_moment == MomentType::fp32 && c.optimizer.second_moment == MomentType::fp32;
}
bool no_dynamic_scale(const TrainConfig& c) {
  return c.model.precision != Precision::f16 || c.scaling.constant.has_value();
}

bool no_experts(const TrainConfig& c) { return c.model.experts.count == 0; }
bool no_room(const TrainConfig& c) { return !c.model.experts.router.capacity; }
bool nothing_weighed(const TrainConfig& c) {
  return std::ranges::none_of(c.model.experts.router.coefficients, [](double x) { return x > 0; });
}
bool nothing_balanced(const TrainConfig& c) {
  return std::ranges::all_of(c.model.experts.router.balancing,
                             [](Balancing b) { return b == Balancing::none; });
}
bool no_peers(const TrainConfig& c) { return c.parallel.dp * c.parallel.cp == 1; }
bool no_stages(const TrainConfig& c) { return c.parallel.pp == 1; }
bool never_evaluates(const TrainConfig& c) { return !evaluates(c); }
bool no_tokenizer(const TrainConfig& c) { return c.data.tokenizer.type.empty(); }
bool no_decay(const TrainConfig& c) { return c.rate.style == RateStyle::constant; }
bool no_end_of_decay(const TrainConfig& c) { return no_decay(c) && !c.rate.warmup_fraction; }
bool no_warmup(const TrainConfig& c) {
  const RateConfig& r = c.rate;
  return r.warmup_iterations + r.warmup_samples + r.warmup_tokens == 0 && r.warmup_fraction.value_or(0) == 0;
}
bool latent(const TrainConfig& c) { return c.model.latent.on; }
bool no_indices(const TrainConfig& c) {
  const bool stored = c.data.index == IndexKind::stored;
  return samples_of(c) == Samples::Of::documents ? !stored : c.data.mock;
}
bool no_files_of_indices(const TrainConfig& c) {
  return no_indices(c) || (c.data.mock && c.data.cache.empty());
}
bool one_source(const TrainConfig& c) {
  const DataConfig& d = c.data;
  const auto most =
      std::max({d.paths.size(), d.train_paths.size(), d.valid_paths.size(), d.test_paths.size()});
  return d.mock || (d.paths_file.empty() && d.per_split_file.empty() && most < 2);
}
bool even_batches(const TrainConfig& c) {
  return c.batch.rampup.empty() && c.batch.global % (c.batch.micro * c.parallel.dp) == 0;
}
bool padded_otherwise(const TrainConfig& c) {
  return c.model.padded_vocabulary != round_up(c.model.vocabulary, c.model.vocabulary_unit);
}
bool nothing_forgotten(const TrainConfig& c) {
  const RecomputeConfig& r = c.model.recompute;
  return r.what == Recompute::selective && std::ranges::all_of(r.modules, [](RecomputeModule m) {
           return m == RecomputeModule::core_attention;
         });
}
bool no_curriculum(const TrainConfig& c) { return c.curriculum.rule.curve == data::LengthCurve::none; }
bool no_curve(const TrainConfig& c) {
  return no_curriculum(c) || c.curriculum.rule.curve == data::LengthCurve::fixed_discrete;
}
bool no_stairs(const TrainConfig& c) { return c.curriculum.rule.curve != data::LengthCurve::fixed_discrete; }
bool no_root(const TrainConfig& c) { return c.curriculum.rule.curve != data::LengthCurve::fixed_root; }

bool no_mup(const TrainConfig& c) { return !c.model.mup.on; }
bool no_levels(const TrainConfig& c) {
  const auto& layers = c.parallel.context_layers;
  return c.parallel.context != ContextForm::two_levels &&
         std::ranges::find(layers, ContextForm::two_levels) == layers.end();
}

constexpr std::string_view saves = "only --save writes checkpoints", loads = "only --load reads a checkpoint",
                           anneals = "only --lr-decay-style WSD ends with such a part",
                           events = "only --tensorboard-dir writes events",
                           distances = "only --position-embedding-type relative reads it",
                           rotary = "only --position-embedding-type rope turns anything",
                           stretched = "only --use-rope-scaling and yarn stretch angles",
                           yarn = "only --position-embedding-type yarn reads it",
                           llama3 = "only --use-rope-scaling reads it",
                           moments = "sgd and lion have no second moment",
                           lion = "only --optimizer lion reads it", lamb = "only --optimizer lamb reads it",
                           trusts = "only --optimizer lamb and onebitlamb have trust ratios",
                           onebit_lamb = "only --optimizer onebitlamb reads it",
                           zero_one = "only --optimizer zerooneadam reads it",
                           offloads = "only --optimizer-cpu-offload puts states in files",
                           muon = "only --optimizer muon reads it",
                           hides = "only the samples of BERT and T5 hide words",
                           widths = "only --use-mup follows the width of the model",
                           grows = "only --curriculum-schedule lets samples grow longer",
                           curves = "only --curriculum-schedule fixed_linear and fixed_root read it",
                           climbs = "only --curriculum-schedule fixed_discrete reads it",
                           cuts = "only --fim-data cuts documents",
                           experts = "only --num-experts gives layers a router",
                           peers = "only data-parallel and context-parallel ranks have gradients to add",
                           stages = "only --pipeline-model-parallel-size cuts layers into stages",
                           looks = "nothing is evaluated", reads = "only --tokenizer-type reads it",
                           caches = "no index of samples is kept",
                           heads =
                               "--qk-head-dim, --qk-pos-emb-head-dim and --v-head-dim say how wide heads of "
                               "latent attention are",
                           scales = "only --fp16 without --loss-scale grows and halves a scale";

constexpr Idle table[] = {
    {"checkpoint.interval", never_saves, saves},
    {"checkpoint.save_optimizer", never_saves, saves},
    {"checkpoint.save_random", never_saves, saves},
    {"checkpoint.load_optimizer", never_loads, loads},
    {"checkpoint.load_random", never_loads, loads},
    {"checkpoint.use_tokenizer", [](const TrainConfig& c) { return !c.checkpoint.use_args; },
     "only --use-checkpoint-args takes settings from a checkpoint"},
    {"rate.embedding_floor", [](const TrainConfig& c) { return !c.rate.embedding_peak; },
     "only --decoupled-lr gives the embedding a rate of its own"},
    {"model.sentence_order", no_sentences, "only BERT guesses the order of a text's parts"},
    {"model.token_types", [](const TrainConfig& c) { return no_sentences(c) || c.model.sentence_order; },
     "only BERT with --bert-no-binary-head has a choice of token types"},
    {"model.output_bias",
     [](const TrainConfig& c) { return no_hidden_words(c) || (no_sentences(c) && !c.model.tied_output); },
     "only BERT, and T5 with tied words, have biases of logits"},
    {"model.relative.buckets", no_distances, distances},
    {"model.relative.farthest", no_distances, distances},
    {"data.masking.probability", no_hidden_words, hides},
    {"data.masking.short_probability", no_hidden_words, hides},
    {"rate.anneal_style", no_annealing, anneals},
    {"rate.anneal_iterations", no_annealing, anneals},
    {"rate.anneal_samples", no_annealing, anneals},
    {"optimizer.momentum", [](const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::sgd; },
     "only --optimizer sgd has it"},
    {"optimizer.beta1", no_moments, moments},
    {"optimizer.beta2", no_moments, moments},
    {"optimizer.epsilon", no_moments, moments},
    {"optimizer.decoupled_decay",
     [](const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::adam && no_muon(c); },
     "only --optimizer adam and muon have both ways"},
    {"optimizer.any_moment_type", no_narrow_moment, "only --exp-avg-dtype and --exp-avg-sq-dtype need it"},
    {"optimizer.onebit.freeze",
     [](const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::onebitadam && no_onebit_lamb(c); },
     "only --optimizer onebitadam and onebitlamb freeze anything"},
    {"optimizer.onebit.keep", no_onebit_lamb, onebit_lamb},
    {"optimizer.onebit.least_factor", no_onebit_lamb, onebit_lamb},
    {"optimizer.onebit.most_factor", no_onebit_lamb, onebit_lamb},
    {"optimizer.onebit.factor_step", no_onebit_lamb, onebit_lamb},
    {"optimizer.zeroone.freeze", no_zero_one, zero_one},
    {"optimizer.zeroone.variance_steps", no_zero_one, zero_one},
    {"optimizer.zeroone.local_steps", no_zero_one, zero_one},
    {"optimizer.zeroone.most_local", no_zero_one, zero_one},
    {"optimizer.offload.directory", no_offload, offloads},
    {"optimizer.offload.fraction", no_offload, offloads},
    {"optimizer.muon.momentum", no_muon, muon},
    {"optimizer.muon.nesterov", no_muon, muon},
    {"optimizer.muon.split_qkv", no_muon, muon},
    {"optimizer.muon.scale", no_muon, muon},
    {"optimizer.muon.extra_scale", no_muon, muon},
    {"optimizer.muon.ranks", no_muon_ranks,
     "only --optimizer muon with --tensor-model-parallel-size reads it"},
    {"optimizer.muon.precision", no_muon, muon},
    {"optimizer.muon.rounds", no_muon, muon},
    {"optimizer.muon.steps", no_muon, muon},
    {"optimizer.lion.beta1", no_lion, lion},
    {"optimizer.lion.beta2", no_lion, lion},
    {"optimizer.lamb.least", no_trust, trusts},
    {"optimizer.lamb.most", no_trust, trusts},
    {"optimizer.lamb.bias_correction", no_lamb, lamb},
    {"optimizer.lamb.epsilon_inside", no_lamb, lamb},
    {"scaling.initial", no_dynamic_scale, scales},
    {"scaling.least", no_dynamic_scale, scales},
    {"scaling.window", no_dynamic_scale, scales},
    {"scaling.hysteresis", no_dynamic_scale, scales},
    {"log.tensorboard_interval", no_events, events},
    {"log.tensorboard_queue", [](const TrainConfig& c) { return no_events(c) && c.log.jsonl.empty(); },
     events},
    {"log.tensorboard_timers", no_events, events},
    {"log.tensorboard_memory", no_events, events},
    {"log.tensorboard_perplexity", no_events, events},
    {"log.tensorboard_world_size", no_events, events},
    {"log.tensorboard_learning_rate", no_events, events},
    {"log.tensorboard_loss_scale", no_events, events},
    {"parallel.near_ranks", [](const TrainConfig& c) { return c.parallel.near_ranks < 2; },
     "one rank alone has no others near it"},
    {"parallel.reduce_once", [](const TrainConfig& c) { return c.parallel.zero < 2; },
     "only --zero-stage 2 and 3 cut gradients"},
    {"run.sample_tokens", [](const TrainConfig& c) { return c.run.sample_prompt.empty(); },
     "only --sample-prompt prints a continuation"},
    {"model.recompute.what", nothing_forgotten, "attention never stores its scores"},
    {"model.recompute.modules", nothing_forgotten, "attention never stores its scores"},
    {"model.recompute.method", [](const TrainConfig& c) { return c.model.recompute.what != Recompute::full; },
     "only --recompute-granularity full recomputes layers"},
    {"model.recompute.layers", [](const TrainConfig& c) { return c.model.recompute.what != Recompute::full; },
     "only --recompute-granularity full recomputes layers"},
    {"model.window_full_every", [](const TrainConfig& c) { return c.model.window == 0; },
     "only --window-size gives layers a window"},
    {"model.window_layers", [](const TrainConfig& c) { return c.model.window == 0; },
     "only --window-size gives layers a window"},
    {"model.rotary.base", no_rotary, rotary},
    {"model.rotary.percent", no_rotary, rotary},
    {"model.rotary.interleaved", no_rotary, rotary},
    {"model.rotary.skip_every", no_rotary, rotary},
    {"model.rotary.factor", not_stretched, stretched},
    {"model.rotary.original_positions", not_stretched, stretched},
    {"model.rotary.low", not_llama3, llama3},
    {"model.rotary.high", not_llama3, llama3},
    {"model.rotary.beta_fast", not_yarn, yarn},
    {"model.rotary.beta_slow", not_yarn, yarn},
    {"model.rotary.mscale", not_yarn, yarn},
    {"model.rotary.mscale_all", not_yarn, yarn},
    {"guard.injected", [](const TrainConfig& c) { return c.guard.inject_every == 0; },
     "only --error-injection-rate makes faults up"},
    {"curriculum.form", no_curriculum, grows},
    {"curriculum.most", no_curriculum, grows},
    {"curriculum.least", no_curve, curves},
    {"curriculum.steps", no_curve, curves},
    {"curriculum.multiple", no_curve, curves},
    {"curriculum.root", no_root, "only --curriculum-schedule fixed_root bends the line"},
    {"curriculum.lengths", no_stairs, climbs},
    {"curriculum.until", no_stairs, climbs},
    {"data.fim.rate", no_middle, cuts},
    {"data.fim.suffix_first_rate", no_middle, cuts},
    {"data.fim.split", no_middle, cuts},
    {"data.fim.fragment_rate", no_middle, cuts},
    {"data.fim.spared", no_middle, cuts},
    {"data.fim.prefix", no_middle, cuts},
    {"data.fim.middle", no_middle, cuts},
    {"data.fim.suffix", no_middle, cuts},
    {"data.fim.pad", no_middle, cuts},
    {"data.fim.eod", no_middle, cuts},
    {"model.mup.base_hidden", no_mup, widths},
    {"model.mup.embedding_multiplier", no_mup, widths},
    {"model.mup.output_multiplier", no_mup, widths},
    {"model.mup.base_channels", no_mup, widths},
    {"model.mup.attention_power", no_mup, widths},
    {"parallel.context_levels", no_levels, "only --cp-comm-type a2a+p2p has two levels"},
    {"parallel.context_layers", [](const TrainConfig& c) { return c.parallel.cp == 1; },
     "only --context-parallel-size shares a sequence"},
    {"parallel.context", [](const TrainConfig& c) { return c.parallel.cp == 1; },
     "only --context-parallel-size shares a sequence"},
    {"checkpoint.retain_interval", never_saves, saves},
    {"checkpoint.allow_fresh_start", never_loads, loads},
    {"rate.resume", never_loads, loads},
    {"rate.floor", no_decay, "a constant rate ends as it is"},
    {"rate.decay_iterations", no_end_of_decay, "a constant rate ends as it is"},
    {"rate.decay_samples", no_end_of_decay, "a constant rate ends as it is"},
    {"rate.decay_tokens", no_end_of_decay, "a constant rate ends as it is"},
    {"rate.start", no_warmup, "only a warm-up starts there"},
    {"batch.round_down", even_batches, "every batch can be shared evenly"},
    {"eval.interval", never_evaluates, looks},
    {"eval.micro", never_evaluates, looks},
    {"eval.global", never_evaluates, looks},
    {"model.experts.every", no_experts, experts},
    {"model.experts.layers", no_experts, experts},
    {"model.experts.shared_gate", no_experts, experts},
    {"model.experts.router.chosen", no_experts, experts},
    {"model.experts.router.score", no_experts, experts},
    {"model.experts.router.softmax_first", no_experts, experts},
    {"model.experts.router.groups", no_experts, experts},
    {"model.experts.router.groups_kept", no_experts, experts},
    {"model.experts.router.scaling", no_experts, experts},
    {"model.experts.router.expert_bias", no_experts, experts},
    {"model.experts.router.bias_rate", no_experts, experts},
    {"model.experts.router.balancing", no_experts, experts},
    {"model.experts.router.coefficients", no_experts, experts},
    {"model.experts.router.z_loss", no_experts, experts},
    {"model.experts.router.capacity", no_experts, experts},
    {"model.experts.router.drop", no_experts, experts},
    {"model.experts.router.capacity_evaluating", no_experts, experts},
    {"model.experts.router.least_rows", no_experts, experts},
    {"model.experts.router.jitter", no_experts, experts},
    {"model.experts.router.by_chance", no_experts, experts},
    {"model.experts.router.precision", no_experts, experts},
    {"log.experts_by_layer", no_experts, experts},
    {"parallel.etp", no_experts, experts},
    {"model.experts.router.bias_rate",
     [](const TrainConfig& c) { return !no_experts(c) && !c.model.experts.router.expert_bias; },
     "only --moe-router-enable-expert-bias moves by it"},
    {"model.experts.router.drop", [](const TrainConfig& c) { return !no_experts(c) && no_room(c); },
     "only --moe-expert-capacity-factor drops rows"},
    {"model.experts.router.balancing",
     [](const TrainConfig& c) {
       return !no_experts(c) && nothing_weighed(c) && !nothing_balanced(c) &&
              !c.model.experts.router.sinkhorn();
     },
     "only --moe-aux-loss-coeff gives losses a weight"},
    {"model.experts.router.coefficients",
     [](const TrainConfig& c) { return !no_experts(c) && nothing_balanced(c); },
     "only --moe-router-load-balancing-type names losses"},
    {"model.ahead.factor", [](const TrainConfig& c) { return c.model.ahead.depths == 0; },
     "only --mtp-num-layers guesses further tokens"},
    {"model.channels", latent, heads},
    {"model.groups", latent, "latent attention has a key for every head"},
    {"model.vocabulary_unit", padded_otherwise, "--padded-vocab-size says how many rows are stored"},
    {"optimizer.weight_decay",
     [](const TrainConfig& c) { return c.optimizer.weight_decay_growth != DecayGrowth::constant; },
     "a decay that grows has --start-weight-decay and --end-weight-decay"},
    {"optimizer.decay_qk_norm", [](const TrainConfig& c) { return !c.model.qk_norm; },
     "only --qk-layernorm has such norms"},
    {"parallel.zero", no_peers, peers},
    {"parallel.overlap_reduce", no_peers, peers},
    {"parallel.buckets", no_peers, peers},
    {"parallel.bucket_elements", no_peers, peers},
    {"scaling.reduce_in_bf16", no_peers, peers},
    {"parallel.bucket_elements", [](const TrainConfig& c) { return !no_peers(c) && c.parallel.buckets > 0; },
     "--ddp-num-buckets says how large they are"},
    {"parallel.order", [](const TrainConfig& c) { return no_stages(c) || c.parallel.dp == 1; },
     "only stages and data-parallel ranks together have an order"},
    {"parallel.count_embedding", no_stages, stages},
    {"parallel.count_loss", no_stages, stages},
    {"log.timing_report", [](const TrainConfig& c) { return c.log.timing_level == 0; },
     "only --timing-log-level 1 and 2 time parts of a step"},
    {"guard.non_finite", [](const TrainConfig& c) { return c.guard.non_finite == NonFinite::rescale; },
     "a loss scale that moves skips what is not finite"},
    {"data.cache", no_indices, caches},
    {"data.cache_version", no_files_of_indices, caches},
    {"data.cache_tokenizer", no_files_of_indices, caches},
    {"data.separate_validation", one_source, "there is one validation set"},
    {"data.index", [](const TrainConfig& c) { return !no_hidden_words(c) && one_source(c); },
     "samples of BERT and T5 are always stored in their order"},
    {"data.tokenizer.model", no_tokenizer, reads},
    {"data.tokenizer.pattern", no_tokenizer, reads},
    {"data.tokenizer.num_special", no_tokenizer, reads},
    {"data.tokenizer.special", no_tokenizer, reads},
    {"data.tokenizer.extra_ids", no_tokenizer, reads},
    {"data.tokenizer.legacy", no_tokenizer, reads},
    {"data.tokenizer.wraps_text", no_tokenizer, reads},
    {"data.tokenizer.legacy_pieces", no_tokenizer, reads},
    {"data.tokenizer.drops_spaces", no_tokenizer, reads},
    {"data.tokenizer.eod_id", no_tokenizer, reads},
    {"data.tokenizer.pad_id", no_tokenizer, reads},
    {"data.ambiguous_pad", no_tokenizer, "only a token of a tokenizer fills samples up"},
    {"parallel.sequence", [](const TrainConfig& c) { return c.parallel.tp == 1; },
     "only --tensor-model-parallel-size gives ranks to cut the sequence over"},
};

}  // namespace

std::vector<std::string> idle_flags(const Command& command) {
  struct Waiting {
    std::string_view why;
    std::string flags;
  };
  std::vector<Waiting> out;
  for (const Idle& idle : table) {
    const auto flag = command.flags.find(idle.path);
    if (flag == command.flags.end() || !idle.idle(command.config)) continue;
    const bool key = flag->second.find('.') != std::string_view::npos;  // of DeepSpeed's file
    const std::string said = text(key ? "" : "--", flag->second);
    const auto same = std::ranges::find(out, idle.why, &Waiting::why);
    if (same == out.end())
      out.push_back({idle.why, said});
    else
      same->flags += ", " + said;
  }
  std::vector<std::string> sentences;
  for (const auto& [why, flags] : out) sentences.push_back(text("no effect here: ", flags, " (", why, ")"));
  return sentences;
}

}  // namespace weft::cli
