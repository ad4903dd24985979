// Looking for the first number that is not finite: forward with a watch, then the gradients one microbatch at
// a time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/error.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/host.h"
#include "weft/train/step.h"

namespace weft {
namespace {

/// Remembers the first operation whose result holds a number that is not finite.
class FirstNotFinite final : public Watch {
 public:
  void see(const char* operation, int layer, const Tensor& x) override {
    if (!found_.empty() || number(ops::find_nonfinite(x)) < 0) return;
    found_ = layer < 0 ? fmt::format("first seen after {}", operation)
                       : fmt::format("first seen after {} of layer {}", operation, layer);
  }
  const std::string& found() const { return found_; }

 private:
  std::string found_;
};

std::string samples_of(const Batch& batch) {
  return fmt::format("samples {}", fmt::join(to_host<std::int64_t>(batch.samples), ", "));
}

std::string bad_gradient(const Workshop& shop) {
  for (const WeightBlock& block : shop.weights.blocks())
    for (const WeightSlot& slot : block.slots)
      if (number(ops::find_nonfinite(Weights::part(block.grads, slot))) >= 0)
        return "in the gradient of " + slot.parameter->name;
  return "";
}

}  // namespace

std::string find_not_finite(const Workshop& shop, std::span<const Batch> microbatches,
                            const StepOrder& order) {
  const float scale = shop.scaler ? float(shop.scaler->scale()) : 1;
  for (const Batch& batch : microbatches) {
    Pass pass;
    FirstNotFinite watch;
    const double tokens = number(ops::sum(batch.mask));
    const StepPlace place{.seed = order.seed,
                          .step = std::uint64_t(order.step),
                          .training = true,
                          .loss_factor = tokens > 0 ? scale / float(tokens) : 0};
    shop.weights.zero_grads();
    pass.open(batch, place, &watch);
    for (const auto& [number, stage] : shop.stages) (void)stage.forward(pass, {});
    for (const auto& [number, stage] : shop.stages) (void)stage.backward(pass, {});
    pass.weight_grads().pay();
    const std::string found = watch.found().empty() ? bad_gradient(shop) : watch.found();
    if (!found.empty()) return found + ", " + samples_of(batch);
  }
  return "only in the sum over microbatches: gradients are too large to be added";
}

}  // namespace weft
