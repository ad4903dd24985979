// How long the samples of a step are where they grow with training: from the number of the step alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft::data {

/// DeepSpeed's curves, by its words.
enum class LengthCurve : std::uint8_t { none, fixed_linear, fixed_root, fixed_discrete };
constexpr std::array<std::string_view, 4> words(LengthCurve) {
  return {"none", "fixed_linear", "fixed_root", "fixed_discrete"};
}

struct LengthRule {
  LengthCurve curve = LengthCurve::none;
  std::int64_t least = 0, most = 0;  // tokens
  // ---- a line, or a root of it: at step t, least + (most - least) (t / steps)^(1 / root)
  std::int64_t steps = 0;
  std::int64_t multiple = 8;  // that a length is rounded down to, but for the longest
  double root = 1;
  // ---- stairs: one length after the other, and the last step of each but the last
  std::vector<std::int64_t> lengths, until;
};

/// A rule is looked at before it comes here. Whoever knows a step's number knows its length, so ranks need
/// not agree and a run that goes on has nothing to remember.
class Lengths {
 public:
  struct Stair {
    std::int64_t from = 0, length = 0;  // the first step that is so long
    bool operator==(const Stair&) const = default;
  };
  /// More would take long to find, and each is a shape of its own.
  static constexpr std::int64_t most_stairs = 65536;

  /// The same at every step.
  explicit Lengths(std::int64_t always) : stairs_{{0, always}} {}
  explicit Lengths(const LengthRule& rule);
  std::int64_t at(std::int64_t step) const { return stair_of(step).length; }
  const Stair& stair_of(std::int64_t step) const;
  /// In the order of steps; the first is of step 0.
  std::span<const Stair> stairs() const { return stairs_; }

 private:
  void climb(const LengthRule& rule);
  std::vector<Stair> stairs_;
};

}  // namespace weft::data
