// The GPU's kernels against the oracle, on the emulated GPU: the device "of one thread" runs blocks, lanes
// and streams in their order and as late as may be, those "of more" in other legal ones. After every test
// the watcher must have found nothing, and tiles no two rows in one group of banks.
#include <gmock/gmock.h>
#include <runtime.h>

#include "tests/backend/conformance.h"
#include "tests/backend/waiting_kernels.h"
#include "tests/support/gpu/emulated.h"
#include "tests/support/refused.h"
#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/fixed_order.h"
#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A machine whose GPU has compute capability 9, for as long as somebody keeps it.
using Nine = std::shared_ptr<emulated::CardsHere>;
Nine nine() {
  static std::weak_ptr<emulated::CardsHere> there;
  Nine here = there.lock();
  if (!here) there = here = std::make_shared<emulated::CardsHere>(emulated::Cards{.capability = 9});
  return here;
}

class EmulatedGpu final : public CudaDevice {
 public:
  EmulatedGpu(const CudaOptions& options, unsigned pace, bool waits, Nine in)
      : CudaDevice(options), in_(std::move(in)), pace_(pace), waits_(waits) {}
  Kernels& kernels() override {
    emulated::set_pace(pace_);
    return waits_ ? waiting_ : CudaDevice::kernels();
  }

 private:
  Nine in_;
  unsigned pace_;
  bool waits_;
  WaitingKernels waiting_{*this, CudaDevice::kernels()};
};

std::unique_ptr<Device> opened(const CudaOptions& options, int threads, Nine in = nullptr) {
  constexpr std::array orders{unsigned{emulated::lazy}, unsigned{emulated::eager}, 7U, 11U};
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return std::make_unique<EmulatedGpu>(options, orders[std::size_t(threads) - 1], test.starts_with("refuses"),
                                       std::move(in));
}

std::unique_ptr<Device> emulated_gpu(int threads) { return opened({}, threads); }
std::unique_ptr<Device> with_warpgroups(int threads) { return opened({.warpgroups = true}, threads, nine()); }

std::unique_ptr<Device> in_exact_mode(int threads) {
  return opened({.exact = true}, threads, nine());  // whose products would have gelu in them
}

std::unique_ptr<Device> exactly_by_warpgroups(int threads) {
  return opened({.exact = true, .warpgroups = true}, threads, nine());
}

Subject subject(std::unique_ptr<Device> (*open)(int threads), std::string name = "cuda_emulated") {
  return {std::move(name), open, {2, 3, 4}};
}

INSTANTIATE_TEST_SUITE_P(EmulatedGpu, Conformance, ::testing::Values(subject(emulated_gpu)), spelled);
INSTANTIATE_TEST_SUITE_P(EmulatedGpu, Warpgroups, ::testing::Values(subject(with_warpgroups)), spelled);
INSTANTIATE_TEST_SUITE_P(EmulatedGpu, InExactMode,
                         ::testing::Values(subject(in_exact_mode),
                                           subject(exactly_by_warpgroups, "cuda_emulated_by_warpgroups")),
                         spelled);
INSTANTIATE_TEST_SUITE_P(EmulatedGpu, ConformanceInDoubles, ::testing::Values(subject(emulated_gpu)),
                         spelled);

/// Products of warpgroups that a device's attention of 64 queries forward and backward takes.
std::uint64_t products(const CudaOptions& options, std::int64_t d) {
  CudaDevice device(options);
  const auto ones = [&](const Shape& shape) {
    const Tensor out = empty(device, shape, Dtype::bf16);
    device.kernels().fill(out, 1);
    return out;
  };
  const Shape queries{64, 1, 1, 1, d}, keys{64, 1, 1, d};
  const Attended in{ones(queries), ones(keys), ones(keys)};
  const AttentionOut out{ones(queries), empty(device, {1, 1, 64})};
  AttentionGrads grads;
  grads.dq = ones(queries);
  grads.dk = ones(keys);
  grads.dv = ones(keys);
  const std::uint64_t before = emulated::meter().products;
  device.kernels().attention(out, in, {});
  device.kernels().attention_backward(grads, ones(queries), out, in, {});
  device.synchronize();
  return emulated::meter().products - before;
}

/// The same of a product in groups, or of exact mode, of 64 rows.
std::uint64_t products_of_panels(const CudaOptions& options) {
  CudaDevice device(options);
  const Tensor x = empty(device, {64, 72}, Dtype::bf16), w = empty(device, {1, 72, 264}, Dtype::bf16),
               out = empty(device, {64, 264}, Dtype::bf16);
  for (const Tensor& t : {x, w}) device.kernels().fill(t, 1);
  const std::uint64_t before = emulated::meter().products;
  if (options.exact)
    device.kernels().matmul(out, x, w.at(0, 0), {});
  else
    device.kernels().grouped_matmul(out, x, w, {{{0, 64}}}, {});
  device.synchronize();
  return emulated::meter().products - before;
}

// A block of queries has eight warps, which take four products for the scores of 64 keys and as many for the
// sums; backward four more, for <dout, v>. A block of keys has four warps, of which the first two are twice
// half a tile's, and the others of half of its rows. Eight warps of two blocks take four products of two
// panels.
TEST_P(Warpgroups, compute_where_they_are_wanted_and_there) {
  {
    const emulated::CardsHere eight({.capability = 8});
    EXPECT_EQ(products({.warpgroups = true}, 64), 0U);
    EXPECT_EQ(products_of_panels({.warpgroups = true}), 0U);
  }
  const emulated::CardsHere nine({.capability = 9});
  EXPECT_EQ(products({}, 64), 0U);
  EXPECT_EQ(products({.warpgroups = true}, 64), 8U * (4 + 4) + 8U * (4 + 4 + 4) + 4U * 2 * (4 + 4 + 2 + 2));
  EXPECT_EQ(products({.warpgroups = true}, 256), 0U);
  EXPECT_EQ(products_of_panels({}), 0U);
  EXPECT_EQ(products_of_panels({.warpgroups = true}), 8U * 2 * 2 * 4);
  EXPECT_EQ(products_of_panels({.exact = true}), 0U);
  EXPECT_EQ(products_of_panels({.exact = true, .warpgroups = true}), 8U * 2 * 2 * 4);
}

/// Kernels whose products show how many rows there are, in one type.
class UnevenKernels final : public Kernels {
 public:
  UnevenKernels(Kernels& kernels, Dtype dtype) : kernels_(kernels), dtype_(dtype) {}
  const char* name() const override { return kernels_.name(); }
  void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) override {
    kernels_.matmul(out, a, b, how);
    if (a.dtype() == dtype_ && out.dim(0) % 32 == 0) kernels_.scale(out, 1 + 0x1p-20F);
  }

 private:
  void hand_on(const KernelCall& call) override { call.on(kernels_); }
  Kernels& kernels_;
  Dtype dtype_;
};
class UnevenGpu final : public CudaDevice {
 public:
  explicit UnevenGpu(Dtype dtype) : uneven_(CudaDevice::kernels(), dtype) {}
  Kernels& kernels() override { return uneven_; }

 private:
  UnevenKernels uneven_;
};

TEST_P(InExactMode, asks_for_products_that_hold_their_bits) {
  for (const Dtype dtype : floats) {
    UnevenGpu gpu(dtype);
    EXPECT_EQ(
        refused([&] { cuda::must_hold_bits(gpu); }),
        text("device cuda: exact mode multiplied a matrix in ", dtype,
             " and a part of it, and their bits differ: this GPU's products show how rows and columns are "
             "shared out; leave {model.exact} out, or take {run.device=cpu}"));
  }
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
