// Flags that were given and do nothing without another: each is said, with what it waits for.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/cli/dialect.h"

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
bool no_hidden_words(const TrainConfig& c) { return c.model.kind == "gpt"; }
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
bool no_muon(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::muon; }
bool no_muon_ranks(const TrainConfig& c) { return no_muon(c) || c.parallel.tp == 1; }
bool no_narrow_moment(const TrainConfig& c) {
  return c.optimizer.first_moment == MomentType::fp32 && c.optimizer.second_moment == MomentType::fp32;
}
bool no_dynamic_scale(const TrainConfig& c) {
  return c.model.precision != Precision::f16 || c.scaling.constant.has_value();
}

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
                           muon = "only --optimizer muon reads it",
                           hides = "only the samples of BERT and T5 hide words",
                           widths = "only --use-mup follows the width of the model",
                           cuts = "only --fim-data cuts documents",
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
    {"model.sentence_order", [](const TrainConfig& c) { return c.model.kind != "bert"; },
     "only BERT guesses the order of a text's parts"},
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
     [](const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::onebitadam; },
     "only --optimizer onebitadam freezes anything"},
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
    {"optimizer.lamb.least", no_lamb, lamb},
    {"optimizer.lamb.most", no_lamb, lamb},
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
    {"parallel.reduce_once", [](const TrainConfig& c) { return c.parallel.zero < 2; },
     "only --zero-stage 2 and 3 cut gradients"},
    {"run.sample_tokens", [](const TrainConfig& c) { return c.run.sample_prompt.empty(); },
     "only --sample-prompt prints a continuation"},
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
    {"parallel.sequence", [](const TrainConfig& c) { return c.parallel.tp == 1; },
     "only --tensor-model-parallel-size gives ranks to cut the sequence over"},
};

}  // namespace

std::vector<std::string> idle_flags(const Command& command) {
  std::vector<std::pair<std::string_view, std::string>> out;
  for (const Idle& idle : table) {
    const auto flag = command.flags.find(idle.path);
    if (flag == command.flags.end() || !idle.idle(command.config)) continue;
    const bool more = !out.empty() && out.back().first == idle.why;
    if (!more) out.emplace_back(idle.why, "");
    out.back().second += text(more ? ", --" : "--", flag->second);
  }
  std::vector<std::string> sentences;
  for (const auto& [why, flags] : out) sentences.push_back(text("no effect here: ", flags, " (", why, ")"));
  return sentences;
}

}  // namespace weft::cli
