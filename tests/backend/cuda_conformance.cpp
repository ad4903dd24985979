// The GPU's kernels against the oracle, on the emulated GPU: the device "of one thread" runs blocks, lanes
// and streams in their order and as late as may be, that "of three" in another legal one. After every test
// the watcher must have found nothing, and tiles no two rows in one group of banks.
#include <runtime.h>

#include "tests/backend/conformance.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/base/format.h"

namespace weft::conformance {
namespace {

/// Waits after each call, so that what is wrong with it is said at once.
class WaitingKernels final : public Kernels {
 public:
  WaitingKernels(Device& device, Kernels& kernels) : device_(device), kernels_(kernels) {}
  const char* name() const override { return kernels_.name(); }

 private:
  void hand_on(const KernelCall& call) override {
    call.on(kernels_);
    device_.synchronize();
  }
  Device& device_;
  Kernels& kernels_;
};

class EmulatedGpu final : public CudaDevice {
 public:
  EmulatedGpu(unsigned pace, bool waits) : pace_(pace), waits_(waits) {}
  Kernels& kernels() override {
    emulated::set_pace(pace_);
    return waits_ ? waiting_ : CudaDevice::kernels();
  }

 private:
  unsigned pace_;
  bool waits_;
  WaitingKernels waiting_{*this, CudaDevice::kernels()};
};

Subject emulated_gpu(const char* name, unsigned first, unsigned second) {
  return {name, [=](int threads) {
            const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
            return std::make_unique<EmulatedGpu>(threads == 1 ? first : second, test.starts_with("refuses"));
          }};
}

const std::vector<Subject>& emulated_gpus() {
  static const std::vector<Subject> all{emulated_gpu("cuda_emulated", emulated::lazy, 7)};
  return all;
}

INSTANTIATE_TEST_SUITE_P(EmulatedGpu, Conformance, ::testing::ValuesIn(emulated_gpus()), spelled);

class Watch final : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo&) override {
    EXPECT_EQ(join(emulated::take_reports(), "; "), "");
    EXPECT_EQ(emulated::meter().bank_conflicts, 0U) << "bank conflicts of matrices that tensor cores load";
  }
};
[[maybe_unused]] const bool watching = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new Watch);
  return true;
}();

}  // namespace
}  // namespace weft::conformance
