// The learning rate and the weight decay as functions of how much has been learned from: pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

/// Megatron's, then DeepSpeed's.
enum class RateStyle : std::uint8_t {
  constant,
  linear,
  cosine,
  inverse_square_root,
  wsd,
  warmup_lr,
  warmup_decay_lr,
  warmup_cosine_lr,
  one_cycle,
  lr_range_test
};
/// DeepSpeed's are functions of steps, whatever is in a step.
constexpr bool counts_steps(RateStyle style) { return style >= RateStyle::warmup_lr; }
/// How DeepSpeed's warm up; Megatron's do in a straight line.
enum class WarmupCurve : std::uint8_t { log, linear };
/// How warm-up, stable, decay goes down in its last part.
enum class AnnealStyle : std::uint8_t { exponential, linear, cosine, minus_sqrt };
enum class DecayGrowth : std::uint8_t { constant, linear, cosine };

constexpr std::array<std::string_view, 10> words(RateStyle) {
  return {"constant",  "linear",          "cosine",           "inverse_square_root", "wsd",
          "warmup_lr", "warmup_decay_lr", "warmup_cosine_lr", "one_cycle",           "lr_range_test"};
}
constexpr std::array<std::string_view, 2> words(WarmupCurve) { return {"log", "linear"}; }
constexpr std::array<std::string_view, 4> words(AnnealStyle) {
  return {"exponential", "linear", "cosine", "minus_sqrt"};
}
constexpr std::array<std::string_view, 3> words(DecayGrowth) { return {"constant", "linear", "cosine"}; }

/// Of an optimizer's two means: how much of the past stays in each with a step.
struct Betas {
  double first = 0, second = 0;
};

/// one_cycle: from start up to peak and down again, in steps; then start, ever smaller.
struct RateCycle {
  std::int64_t up = 2000;
  std::optional<std::int64_t> down;         // unset: as up
  std::int64_t stairs_up = 0;               // 0: none, the rate moves at every step
  std::optional<std::int64_t> stairs_down;  // unset: as up
  std::int64_t decay_steps = 0;             // in which it becomes 1 / (1 + decay) of start; 0: it stays
  double decay = 0;
  // The first beta, where it goes against the rate: from most down to least and up again, then most, ever
  // larger. The second is DeepSpeed's then.
  bool momentum = false;
  double least_momentum = 0.8, most_momentum = 0.9;
  double momentum_growth = 0;  // after decay_steps it is 1 + this times most
  static constexpr double second_beta = 0.99;
};
/// lr_range_test: from peak on, `growth` times peak more in every so many steps; with stairs, all at once.
struct RateClimb {
  std::int64_t steps = 2000;
  double growth = 1;
  bool stairs = false;
};

/// All lengths are in the unit of n: samples, or tokens. Step k runs at the n of k - 1 finished steps.
struct RateSchedule {
  RateStyle style = RateStyle::linear;
  AnnealStyle anneal_style = AnnealStyle::exponential;
  double start = 0, peak = 0, floor = 0;  // where warm-up begins, where it ends, where decay ends
  double warmup = 0;                      // may end within a sample
  std::int64_t decay = 0, anneal = 0;
  // Of the styles that count steps.
  std::int64_t step = 1;  // one of them, in the unit of n
  WarmupCurve warmup_curve = WarmupCurve::log;
  RateCycle cycle = {};
  RateClimb climb = {};

  double at(std::int64_t n) const;
  /// None where the optimizer's own stay.
  std::optional<Betas> betas_at(std::int64_t n) const;

 private:
  double after_steps(double finished) const;
};

struct DecaySchedule {
  DecayGrowth growth = DecayGrowth::constant;
  double start = 0, end = 0;
  std::int64_t length = 0;

  double at(std::int64_t n) const;
};

}  // namespace weft
