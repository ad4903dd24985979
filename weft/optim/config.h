// What a person may choose of an optimizer. train/describe.h lists the fields.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/optim/rate.h"

namespace weft {

enum class OptimizerKind : std::uint8_t {
  adam,
  sgd,
  muon,
  lion,
  soap,
  lamb,
  onebitadam,
  zerooneadam,
  onebitlamb
};
/// What a moment is kept in (tensor/args.h says how).
enum class MomentType : std::uint8_t { fp32, bf16, fp16, fp8 };

constexpr std::array<std::string_view, 9> words(OptimizerKind) {
  return {"adam", "sgd", "muon", "lion", "soap", "lamb", "onebitadam", "zerooneadam", "onebitlamb"};
}
constexpr std::array<std::string_view, 4> words(MomentType) { return {"fp32", "bf16", "fp16", "fp8"}; }

struct LionConfig {
  double beta1 = 0.95, beta2 = 0.98;
};

/// DeepSpeed's.
struct LambConfig {
  double least = 0.01, most = 10;  // of a tensor's trust ratio
  bool bias_correction = true;     // of the length of a step; trust ratios see uncorrected moments
  bool epsilon_inside = false;     // of the root
};

/// Megatron's.
enum class MuonScale : std::uint8_t { spectral, unit_rms_norm, shape_scaling };
/// Of a matrix that tensor-parallel ranks hold parts of: every part by itself, the whole on every rank, or
/// the whole by ranks that add their products.
enum class MuonRanks : std::uint8_t { blockwise, duplicated, distributed };
enum class MuonPrecision : std::uint8_t { medium, high, highest };  // products in bf16, or f32
enum class MuonSteps : std::uint8_t { quintic, simple };

constexpr std::array<std::string_view, 3> words(MuonScale) {
  return {"spectral", "unit_rms_norm", "shape_scaling"};
}
constexpr std::array<std::string_view, 3> words(MuonRanks) {
  return {"blockwise", "duplicated", "distributed"};
}
constexpr std::array<std::string_view, 3> words(MuonPrecision) { return {"medium", "high", "highest"}; }
constexpr std::array<std::string_view, 2> words(MuonSteps) { return {"quintic", "simple"}; }

/// Who updates what is no matrix.
enum class MuonOthers : std::uint8_t { adam, lion };
constexpr std::array<std::string_view, 2> words(MuonOthers) { return {"adam", "lion"}; }

struct MuonConfig {
  double momentum = 0.9;
  bool nesterov = false;
  bool split_qkv = true;
  MuonScale scale = MuonScale::spectral;
  double extra_scale = 1;
  MuonRanks ranks = MuonRanks::duplicated;
  MuonPrecision precision = MuonPrecision::medium;
  MuonSteps rounds = MuonSteps::quintic;
  int steps = 5;
  MuonOthers others = MuonOthers::adam;
};

/// DeepSpeed's 1-bit Adam and 1-bit LAMB.
struct OneBitConfig {
  std::int64_t freeze = 100'000;  // the first step whose gradients stay where they are
  // Of 1-bit LAMB: how long the mean of trust ratios remembers, and what a frozen one may be multiplied with.
  double keep = 0.9, least_factor = 0.5, most_factor = 4;
  double factor_step = 0.1;  // most change of that factor in a step, as a part of it
};

/// DeepSpeed's 0/1 Adam.
struct ZeroOneConfig {
  std::int64_t freeze = 100'000;      // steps in which second moments learn
  std::int64_t variance_steps = 16;   // they learn so often before they learn half as often
  std::int64_t local_steps = 32'678;  // so many steps alone, and ranks meet half as often
  std::int64_t most_local = 16;       // most steps from one meeting to the next
};

/// Ranks that read other samples hold whole states, and speak in one bit an element.
constexpr bool speaks_in_one_bit(OptimizerKind kind) {
  return kind == OptimizerKind::onebitadam || kind == OptimizerKind::zerooneadam ||
         kind == OptimizerKind::onebitlamb;
}

/// Rules that update every element by itself.
constexpr bool updates_by_element(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::sgd || kind == OptimizerKind::lion;
}

/// Rules whose betas a schedule may move from step to step.
constexpr bool follows_betas(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::lion || kind == OptimizerKind::lamb;
}

/// States, masters where weights have fewer bits, and weights if asked for, in a file of every rank.
struct OffloadConfig {
  bool on = false;
  std::string directory;  // empty: the host's memory
  double fraction = 1;    // of them
  int buffers = 3;        // windows of them that memory has room for
  bool weights = false;   // too
};

/// Of MuonClip, beside any rule (optim/score_clip.h).
struct QkClipConfig {
  bool on = false;
  double alpha = 0.5;  // the queries' share of what scores shrink by, as a power
  double threshold = 100;
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adam;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double momentum = 0.9;
  double weight_decay = 0.01;
  std::optional<double> weight_decay_start, weight_decay_end;
  DecayGrowth weight_decay_growth = DecayGrowth::constant;
  bool decoupled_decay = true;  // false: added to the gradient
  bool decay_qk_norm = false;
  double clip = 1.0;             // of the global gradient norm; 0: off
  bool any_moment_type = false;  // the two below are asked for on purpose
  MomentType first_moment = MomentType::fp32, second_moment = MomentType::fp32;
  LionConfig lion;
  LambConfig lamb;
  MuonConfig muon;
  OneBitConfig onebit;
  ZeroOneConfig zeroone;
  OffloadConfig offload;
  QkClipConfig qk_clip;
};

}  // namespace weft
