// (x, y) turns to (x cos - y sin, x sin + y cos).
#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {
namespace {

void halves(Out x, const float* cosines, const float* sines, std::int64_t pairs) {
  const Out second = {static_cast<char*>(x.to) + pairs * size_of(x.type), x.type, false};
  each(pairs, [=](auto at) {
    const F a = load(x, at);
    const F b = load(second, at);
    const F cosine = load(cosines, at);
    const F sine = load(sines, at);
    store(x, at, a * cosine - b * sine);
    store(second, at, a * sine + b * cosine);
  });
}

void neighbours(Out x, const float* cosines, const float* sines, std::int64_t pairs) {
  each(2 * pairs, [=](auto at) {
    const F a = load(x, at);
    store(x, at, a * load(cosines, at) + swapped(a) * load(sines, at));
  });
}

}  // namespace

extern const RopeLoops ropes;
const RopeLoops ropes = {.halves = halves, .neighbours = neighbours};

}  // namespace weft::fast::WEFT_ISA
