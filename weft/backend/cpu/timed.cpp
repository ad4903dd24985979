#include "weft/backend/cpu/timed.h"

#include <chrono>
#include <numeric>
#include <utility>

namespace weft {
namespace {

class TimedKernels final : public Kernels {
 public:
  TimedKernels(std::unique_ptr<Kernels> kernels, WorkTimes& times)
      : kernels_(std::move(kernels)), times_(times) {}
  const char* name() const override { return kernels_->name(); }

 private:
  using Clock = std::chrono::steady_clock;

  void hand_on(const KernelCall& call) override {
    const auto start = Clock::now();
    call.on(*kernels_);
    const auto at = std::size_t(call.work());
    times_.seconds[at] += std::chrono::duration<double>(Clock::now() - start).count();
    ++times_.calls[at];
  }

  std::unique_ptr<Kernels> kernels_;
  WorkTimes& times_;
};

}  // namespace

double WorkTimes::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

std::unique_ptr<Kernels> timed(std::unique_ptr<Kernels> kernels, WorkTimes& times) {
  return std::make_unique<TimedKernels>(std::move(kernels), times);
}

}  // namespace weft
