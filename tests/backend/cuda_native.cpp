// The GPU's kernels against the oracle, on the GPU of this machine; where there is none, what is said
// instead.
#include <gtest/gtest.h>

#include "tests/backend/conformance.h"
#include "tests/backend/waiting_kernels.h"
#include "tests/support/refused.h"
#include "weft/backend/cuda/device.h"
#include "weft/backend/open.h"

namespace weft::conformance {

void launch_nothing();  // native_launch.cu

namespace {

class Gpu final : public CudaDevice {
 public:
  Gpu(const CudaOptions& options, bool waits) : CudaDevice(options), waits_(waits) {}
  Kernels& kernels() override { return waits_ ? waiting_ : CudaDevice::kernels(); }

 private:
  bool waits_;
  WaitingKernels waiting_{*this, CudaDevice::kernels()};
};

std::vector<Subject> gpus(const CudaOptions& options, const std::string& name = "cuda") {
  const auto open = [=](int) {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    return std::make_unique<Gpu>(options, test.starts_with("refuses"));
  };
  return gpus_here().all.empty() ? std::vector<Subject>{} : std::vector<Subject>{{name, open}};
}
std::vector<Subject> by_warpgroups(CudaOptions options) {
  const GpusHere here = gpus_here();
  options.warpgroups = true;
  return here.all.empty() || !here.all[0].warpgroups ? std::vector<Subject>{}
                                                     : gpus(options, "cuda_by_warpgroups");
}

INSTANTIATE_TEST_SUITE_P(Native, Conformance, ::testing::ValuesIn(gpus({})), spelled);
INSTANTIATE_TEST_SUITE_P(Native, Warpgroups, ::testing::ValuesIn(by_warpgroups({})), spelled);
INSTANTIATE_TEST_SUITE_P(Native, InExactMode, ::testing::ValuesIn(gpus({.exact = true})), spelled);
INSTANTIATE_TEST_SUITE_P(NativeByWarpgroups, InExactMode, ::testing::ValuesIn(by_warpgroups({.exact = true})),
                         spelled);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InExactMode);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Warpgroups);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(Native, ConformanceInDoubles, ::testing::ValuesIn(gpus({})), spelled);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceInDoubles);

TEST(NativeGpu, is_there_or_a_sentence_says_why_not) {
  const GpusHere here = gpus_here();
  EXPECT_TRUE(here.built_with.starts_with("CUDA ")) << here.built_with;
  if (!here.all.empty()) return;
  EXPECT_NE(here.missing, "");
  EXPECT_EQ(refused([] { open_device("cuda"); }), "device cuda: " + here.missing + "; use cpu");
}

// Where there is no GPU the runtime refuses every launch, and somebody must hear of it.
TEST(NativeGpu, takes_a_launch_or_says_that_it_does_not) {
  const std::string said = refused([] { launch_nothing(); });
  if (gpus_here().all.empty())
    EXPECT_TRUE(said.starts_with(
        "cuda: the GPU refuses a launch of 3 blocks of 32 threads with 100 bytes of shared memory: "))
        << said;
  else
    EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace weft::conformance
