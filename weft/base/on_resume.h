// What a setting that differs from a checkpoint's means to a run that goes on from there.
#pragma once

#include <cstdint>

namespace weft {

/// Every field of a run's settings says one of these beside its name.
enum class OnResume : std::uint8_t {
  untagged,   // not a field of a run's settings
  model,      // the weights would mean something else: it must agree
  step,       // the same weights, but what a step computes is another thing: told
  told,       // how a run goes on, not what a step computes: told
  sums,       // the same step, added in another order: not told
  told_sums,  // the same, told
  free,       // nothing to a step
};

constexpr bool is_told(OnResume tag) {
  return tag == OnResume::step || tag == OnResume::told || tag == OnResume::told_sums;
}
constexpr bool rounds_otherwise(OnResume tag) { return tag == OnResume::sums || tag == OnResume::told_sums; }

}  // namespace weft
