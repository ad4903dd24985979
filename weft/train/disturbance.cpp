#include "weft/train/disturbance.h"

#include <vector>

#include "weft/base/random.h"
#include "weft/optim/weights.h"
#include "weft/tensor/host.h"

namespace weft {

double least_disturbance(Precision precision) {
  return precision == Precision::bf16 ? 0x1p-11 : precision == Precision::f16 ? 0x1p-14 : 0x1p-23;
}

void disturb(Weights& weights, const Disturbance& how) {
  std::uint32_t which = 0;
  weights.each_master([&](const Held& held) {
    const Draw draw({.purpose = Purpose::test, .sample = how.time, .layer = which++});
    std::vector<float> numbers = to_host<float>(held.memory);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = float(numbers[i] * (1 + how.share * (2 * double(draw.uniform(i)) - 1)));
    copy_to<float>(held.memory, numbers);
  });
  weights.publish();
}

}  // namespace weft
