#include "weft/backend/timed.h"

#include <utility>

#include "weft/tensor/device.h"

namespace weft {
namespace {

class TimedKernels final : public Kernels {
 public:
  TimedKernels(std::unique_ptr<Kernels> kernels, Device& device, WorkTimes& times)
      : kernels_(std::move(kernels)), device_(device), times_(times) {}
  const char* name() const override { return kernels_->name(); }

  bool activates_products(Dtype dtype, Activation f) const override {
    return kernels_->activates_products(dtype, f);
  }
  bool multiplies_unseen_groups(Dtype dtype) const override {
    return kernels_->multiplies_unseen_groups(dtype);
  }
  bool loses_in_one_walk(const Tensor& logits) const override { return kernels_->loses_in_one_walk(logits); }

  // What is several kinds of work in one walk counts as the first of them.
  void matmul_activated(const Tensor& y, const Tensor& before, const Tensor& a, const Tensor& b,
                        const ActivatedArgs& how) override {
    look(Work::product, [&] { kernels_->matmul_activated(y, before, a, b, how); });
  }
  void matmul_derived(const Tensor& out, const Tensor& before, const Tensor& a, const Tensor& b,
                      const ActivatedArgs& how) override {
    look(Work::product, [&] { kernels_->matmul_derived(out, before, a, b, how); });
  }
  void weight_gradient(const LinearGrads& grads, const Tensor& dy, const Tensor& x) override {
    if (device_.host_visible()) return Kernels::weight_gradient(grads, dy, x);  // a processor's are two walks
    look(Work::product, [&] { kernels_->weight_gradient(grads, dy, x); });
  }
  void loss_and_gradient(const Tensor& loss, const Tensor& logits, const LossTargets& targets,
                         VocabularyPart part) override {
    look(Work::loss, [&] { kernels_->loss_and_gradient(loss, logits, targets, part); });
  }

 private:
  void hand_on(const KernelCall& call) override {
    look(call.work(), [&] { call.on(*kernels_); });
  }
  template <class Act>
  void look(Work work, const Act& act) {
    if (times_.paused) return act();
    Instant from = device_.instant();
    act();
    times_.spent[std::size_t(work)].add({std::move(from), device_.instant()});
    ++times_.calls[std::size_t(work)];
  }

  std::unique_ptr<Kernels> kernels_;
  Device& device_;
  WorkTimes& times_;
};

}  // namespace

void WorkTimes::forget() {
  for (Spent& one : spent) one.forget();
  calls = {};
}

double WorkTimes::total() {
  double all = 0;
  for (Spent& one : spent) all += one.seconds();
  return all;
}

std::unique_ptr<Kernels> timed(std::unique_ptr<Kernels> kernels, Device& device, WorkTimes& times) {
  return std::make_unique<TimedKernels>(std::move(kernels), device, times);
}

}  // namespace weft
