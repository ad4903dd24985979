// The learning rate and the weight decay as functions of how much has been learned from: pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

enum class RateStyle : std::uint8_t { constant, linear, cosine, inverse_square_root, wsd };
/// How warm-up, stable, decay goes down in its last part.
enum class AnnealStyle : std::uint8_t { exponential, linear, cosine, minus_sqrt };
enum class DecayGrowth : std::uint8_t { constant, linear, cosine };

constexpr std::array<std::string_view, 5> words(RateStyle) {
  return {"constant", "linear", "cosine", "inverse_square_root", "wsd"};
}
constexpr std::array<std::string_view, 4> words(AnnealStyle) {
  return {"exponential", "linear", "cosine", "minus_sqrt"};
}
constexpr std::array<std::string_view, 3> words(DecayGrowth) { return {"constant", "linear", "cosine"}; }

/// All lengths are in the unit of n: samples, or tokens. Step k runs at the n of k - 1 finished steps.
struct RateSchedule {
  RateStyle style = RateStyle::linear;
  AnnealStyle anneal_style = AnnealStyle::exponential;
  double start = 0, peak = 0, floor = 0;  // where warm-up begins, where it ends, where decay ends
  std::int64_t warmup = 0, decay = 0, anneal = 0;

  double at(std::int64_t n) const;
};

struct DecaySchedule {
  DecayGrowth growth = DecayGrowth::constant;
  double start = 0, end = 0;
  std::int64_t length = 0;

  double at(std::int64_t n) const;
};

}  // namespace weft
