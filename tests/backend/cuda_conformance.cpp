// The GPU's kernels against the oracle, on the emulated GPU: the device "of one thread" runs blocks, lanes
// and streams in their order and as late as may be, those "of more" in other legal ones. After every test
// the watcher must have found nothing, and tiles no two rows in one group of banks.
#include <gmock/gmock.h>
#include <runtime.h>

#include "tests/backend/conformance.h"
#include "tests/backend/waiting_kernels.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

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

std::unique_ptr<Device> emulated_gpu(int threads) {
  constexpr std::array orders{unsigned{emulated::lazy}, unsigned{emulated::eager}, 7U, 11U};
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return std::make_unique<EmulatedGpu>(orders[std::size_t(threads) - 1], test.starts_with("refuses"));
}

const std::vector<Subject>& emulated_gpus() {
  static const std::vector<Subject> all{{"cuda_emulated", emulated_gpu, {2, 3, 4}}};
  return all;
}

INSTANTIATE_TEST_SUITE_P(EmulatedGpu, Conformance, ::testing::ValuesIn(emulated_gpus()), spelled);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceInDoubles);

TEST_P(Conformance, says_that_it_computes_nothing_in_double) {
  CudaDevice device;
  const Tensor wide = empty(device, {2, 2}, Dtype::f64), narrow = empty(device, {2, 1});
  const Routed routed{narrow, empty(device, {2, 1}, Dtype::i32)};
  EXPECT_THAT([&] { device.kernels().matmul(wide, wide, wide, {}); },
              ThrowsMessage<Error>(HasSubstr("matmul is not implemented by the cuda backend")));
  EXPECT_THAT([&] { device.kernels().route(routed, wide, {}, {}); },
              ThrowsMessage<Error>(HasSubstr("route is not implemented by the cuda backend")));
}

// The pool lends memory again that no library knows to be free, so it tells the watcher.
TEST_P(Conformance, is_told_of_a_block_that_was_given_back) {
  CudaDevice device;
  Tensor x = empty(device, {64});
  const std::vector<float> from(64, 1);
  device.copy_from_host(*x.storage(), 0, from.data(), x.bytes()).wait();
  const void* const at = x.storage()->data();
  std::vector<float> to(64);
  x = {};
  cudaMemcpyAsync(to.data(), at, 64 * sizeof(float), cudaMemcpyDeviceToHost, device.stream());
  device.synchronize();
  EXPECT_THAT(emulated::take_reports(), ElementsAre(HasSubstr("reads device memory, which was freed")));
}

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
