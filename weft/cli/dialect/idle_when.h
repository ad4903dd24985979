// When a flag does nothing: what it waits for is not there.
#pragma once

#include <algorithm>

#include "weft/base/number.h"
#include "weft/model/kinds.h"
#include "weft/model/layer_parts.h"
#include "weft/train/ranks.h"
#include "weft/train/settings.h"

namespace weft::cli::dialect::when {

inline bool never_saves(const TrainConfig& c) { return c.checkpoint.save.empty(); }
inline bool never_loads(const TrainConfig& c) {
  return c.checkpoint.load.empty() && c.checkpoint.pretrained.empty();
}
inline bool no_layer_again(const TrainConfig& c) { return c.model.recompute.what != Recompute::full; }
inline bool in_f32(const TrainConfig& c) { return c.model.precision == Precision::f32; }
/// Inputs of layers that are computed again: of one tensor-parallel rank, or of ranks that cut them anyway.
inline bool keeps_alone(const TrainConfig& c) { return !no_layer_again(c) && c.parallel.tp == 1; }
inline bool keeps_parts(const TrainConfig& c) { return !no_layer_again(c) && c.parallel.sequence; }
inline bool no_annealing(const TrainConfig& c) { return c.rate.style != RateStyle::wsd; }
inline Samples::Of samples_of(const TrainConfig& c) { return kind_of(c.model).samples(c.model).of; }
inline bool no_hidden_words(const TrainConfig& c) { return samples_of(c) == Samples::Of::documents; }
inline bool no_sentences(const TrainConfig& c) { return samples_of(c) != Samples::Of::hidden_words; }
inline bool conversations(const TrainConfig& c) { return c.data.chat.on; }
inline bool no_conversations(const TrainConfig& c) { return !c.data.chat.on; }
inline bool no_middle(const TrainConfig& c) { return !c.data.fim.on; }
inline bool no_events(const TrainConfig& c) { return c.log.tensorboard.empty(); }
inline bool no_distances(const TrainConfig& c) { return c.model.positions != Positions::relative; }
inline bool no_alibi(const TrainConfig& c) { return c.model.positions != Positions::alibi; }
inline bool no_linear_bias(const TrainConfig& c) { return !c.model.linear_bias; }
inline bool no_rotary(const TrainConfig& c) { return c.model.positions != Positions::rotary; }
/// Of layers whose queries would grow.
inline bool none_still(const TrainConfig& c) {
  return c.model.scores.growth_of == QueryGrowth::still && turns_channels(c.model) &&
         std::ranges::count(c.model.rotary.skip_layers, 0) == std::ssize(c.model.rotary.skip_layers);
}
inline bool plain_latents(const TrainConfig& c) { return !c.model.latent.on || !c.model.qk_norm; }
inline bool no_growth(const TrainConfig& c) { return c.model.scores.growth_every == 0; }
inline bool wide_weights(const TrainConfig& c) { return !c.parallel.wire.weights; }
inline bool wide_gradients(const TrainConfig& c) { return !c.parallel.wire.gradients; }
inline bool whole_gradients(const TrainConfig& c) { return c.parallel.zero < 2; }
inline bool see_all(const TrainConfig& c) { return c.model.window == 0 && c.model.scores.chunk == 0; }
inline bool not_stretched(const TrainConfig& c) { return c.model.rotary.scaling == RotaryScaling::none; }
inline bool not_gated(const TrainConfig& c) { return !c.model.gated; }
inline bool not_yarn(const TrainConfig& c) { return c.model.rotary.scaling != RotaryScaling::yarn; }
inline bool not_llama3(const TrainConfig& c) { return c.model.rotary.scaling != RotaryScaling::llama3; }
inline bool no_muon(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::muon; }
/// Where all is Lion's but what is Muon's.
inline bool muon_beside_lion(const TrainConfig& c) {
  return !no_muon(c) && c.optimizer.muon.others == MuonOthers::lion;
}
inline bool no_moments(const TrainConfig& c) {
  return c.optimizer.kind == OptimizerKind::sgd || c.optimizer.kind == OptimizerKind::lion ||
         muon_beside_lion(c);
}
inline bool no_lion(const TrainConfig& c) {
  return c.optimizer.kind != OptimizerKind::lion && !muon_beside_lion(c);
}
inline bool no_lamb(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::lamb; }
inline bool no_onebit_lamb(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::onebitlamb; }
inline bool no_onebit(const TrainConfig& c) {
  return c.optimizer.kind != OptimizerKind::onebitadam && no_onebit_lamb(c);
}
inline bool no_trust(const TrainConfig& c) { return no_lamb(c) && no_onebit_lamb(c); }
inline bool no_zero_one(const TrainConfig& c) { return c.optimizer.kind != OptimizerKind::zerooneadam; }
inline bool no_offload(const TrainConfig& c) { return !c.optimizer.offload.on; }
inline bool no_muon_ranks(const TrainConfig& c) { return no_muon(c) || c.parallel.tp == 1; }
inline bool no_narrow_moment(const TrainConfig& c) {
  return c.optimizer.first_moment == MomentType::fp32 && c.optimizer.second_moment == MomentType::fp32;
}
inline bool no_dynamic_scale(const TrainConfig& c) {
  return c.model.precision != Precision::f16 || c.scaling.constant.has_value();
}

inline bool no_experts(const TrainConfig& c) { return c.model.experts.count == 0; }
/// Where experts compute every layer that others have an MLP in, and are told their own width.
inline bool no_mlp(const TrainConfig& c) {
  const ModelConfig& m = c.model;
  return parts_in_all(m, LayerPart::mlp) == 0 && m.experts.ffn_hidden != m.ffn_hidden;
}
inline bool no_room(const TrainConfig& c) { return !c.model.experts.router.capacity; }
inline bool nothing_weighed(const TrainConfig& c) {
  return std::ranges::none_of(c.model.experts.router.coefficients, [](double x) { return x > 0; });
}
inline bool nothing_balanced(const TrainConfig& c) {
  return std::ranges::all_of(c.model.experts.router.balancing,
                             [](Balancing b) { return b == Balancing::none; });
}
inline bool no_peers(const TrainConfig& c) { return data_ranks(c.parallel) == 1; }
inline bool no_stages(const TrainConfig& c) { return c.parallel.pp == 1; }
inline bool never_evaluates(const TrainConfig& c) { return !evaluates(c); }
inline bool no_tokenizer(const TrainConfig& c) { return c.data.tokenizer.type.empty(); }
inline bool no_decay(const TrainConfig& c) { return c.rate.style == RateStyle::constant; }
inline bool no_end_of_decay(const TrainConfig& c) { return no_decay(c) && !c.rate.warmup_fraction; }
/// DeepSpeed's schedules start there with a warm-up or without one.
inline bool no_warmup(const TrainConfig& c) {
  const RateConfig& r = c.rate;
  if (counts_steps(r.style)) return false;
  return r.warmup_iterations + r.warmup_samples + r.warmup_tokens == 0 && r.warmup_fraction.value_or(0) == 0;
}
inline bool latent(const TrainConfig& c) { return c.model.latent.on; }
inline bool remembers_nothing(const TrainConfig& c) { return !c.model.delta.on; }
inline bool no_state(const TrainConfig& c) { return parts_in_all(c.model, LayerPart::state) == 0; }
inline bool no_profile(const TrainConfig& c) { return !c.profile.on; }
inline bool one_source(const TrainConfig& c);
inline bool no_indices(const TrainConfig& c) {
  // Of conversations nothing is stored but which file a blend reads in turn.
  if (c.data.chat.on) return c.data.index != IndexKind::stored || one_source(c) || c.data.cache.empty();
  const bool stored = c.data.index == IndexKind::stored;
  return samples_of(c) == Samples::Of::documents ? !stored : c.data.mock;
}
inline bool no_files_of_indices(const TrainConfig& c) {
  return no_indices(c) || (c.data.mock && c.data.cache.empty());
}
inline bool one_source(const TrainConfig& c) {
  const DataConfig& d = c.data;
  const auto most =
      std::max({d.paths.size(), d.train_paths.size(), d.valid_paths.size(), d.test_paths.size()});
  return d.mock || (d.paths_file.empty() && d.per_split_file.empty() && most < 2);
}
inline bool even_batches(const TrainConfig& c) {
  return c.batch.rampup.empty() && c.batch.global % (c.batch.micro * sample_ranks(c.parallel)) == 0;
}
inline bool padded_otherwise(const TrainConfig& c) {
  return c.model.padded_vocabulary != round_up(c.model.vocabulary, c.model.vocabulary_unit);
}
inline bool nothing_forgotten(const TrainConfig& c) {
  const RecomputeConfig& r = c.model.recompute;
  return r.what == Recompute::selective && std::ranges::all_of(r.modules, [](RecomputeModule m) {
           return m == RecomputeModule::core_attention;
         });
}
inline bool no_curriculum(const TrainConfig& c) { return c.curriculum.rule.curve == data::LengthCurve::none; }
inline bool no_curve(const TrainConfig& c) {
  return no_curriculum(c) || c.curriculum.rule.curve == data::LengthCurve::fixed_discrete;
}
inline bool no_stairs(const TrainConfig& c) {
  return c.curriculum.rule.curve != data::LengthCurve::fixed_discrete;
}
inline bool no_root(const TrainConfig& c) { return c.curriculum.rule.curve != data::LengthCurve::fixed_root; }

inline bool no_difficulty(const TrainConfig& c) { return !c.data.difficulty.on(); }
inline bool no_token_drop(const TrainConfig& c) { return !c.model.token_drop.on(); }
inline bool no_layer_drop(const TrainConfig& c) { return !c.model.layer_drop.on(); }
inline bool moves_betas(const TrainConfig& c) {
  return c.rate.style == RateStyle::one_cycle && c.rate.cycle.momentum && !c.eval.skip_train;
}
inline bool betas_stay(const TrainConfig& c) { return !moves_betas(c); }
inline bool never_clips_scores(const TrainConfig& c) { return !c.optimizer.qk_clip.on; }
inline bool attends_nowhere(const TrainConfig& c) { return parts_in_all(c.model, LayerPart::attention) == 0; }
inline bool no_mup(const TrainConfig& c) { return !c.model.mup.on; }
inline bool no_fp8(const TrainConfig& c) { return !c.model.fp8.on(); }
inline bool no_delayed_scales(const TrainConfig& c) { return c.model.fp8.on() && !c.model.fp8.delayed(); }
inline bool no_ends_in_bf16(const TrainConfig& c) { return c.model.fp8.on() && !c.model.fp8.ends_in_bf16; }
inline bool no_levels(const TrainConfig& c) {
  const auto& layers = c.parallel.context_layers;
  return c.parallel.context != ContextForm::two_levels &&
         std::ranges::find(layers, ContextForm::two_levels) == layers.end();
}

}  // namespace weft::cli::dialect::when
