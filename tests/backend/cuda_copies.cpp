// Copies that travel beside what computes, as many as use every page again, short ones and long ones: what
// comes of each is what was in its place in the order of asking.
#include <runtime.h>

#include <numeric>

#include "tests/backend/conformance.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/staging.h"
#include "weft/tensor/host.h"

namespace weft::conformance {
namespace {

constexpr std::int64_t page = cuda::StagingPage::bytes / sizeof(float), pages = cuda::StagingRing::most;

std::vector<float> from(float first, std::int64_t count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// The device's own order is what is looked at, so nothing waits on the way.
struct Paced {
  explicit Paced(unsigned pace) { emulated::set_pace(pace); }
  CudaDevice device;
};

// Twins of pages are read by the stream that computes when it gets there, and written by the one that
// travels.
TEST_P(Conformance, copies_up_while_it_computes) {
  for (const unsigned pace : {0U, 1U, 5U, 6U}) {
    Paced gpu(pace);
    std::vector<Tensor> all;
    std::vector<float> source;
    for (std::int64_t i = 0; i < 3 * pages; ++i) {
      source = from(float(i), i % 3 == 0 ? page / 2 - 7 : i % 3 == 1 ? 3 : page + 5);
      all.push_back(from_host<float>(gpu.device, {std::ssize(source)}, source));
      gpu.device.kernels().scale(all.back(), 2);
      std::ranges::fill(source, -1.0F);  // it is the caller's again
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<float> expected = from(float(i), all[i].elements());
      for (float& x : expected) x *= 2;
      ASSERT_EQ(to_host<float>(all[i]), expected) << i;
    }
  }
}

TEST_P(Conformance, copies_down_what_was_there_when_it_was_asked) {
  for (const unsigned pace : {0U, 1U, 5U, 6U}) {
    Paced gpu(pace);
    const Tensor x = from_host<float>(gpu.device, {page + 5}, std::vector<float>(std::size_t(page + 5), 1));
    std::vector<std::vector<float>> came(2 * std::size_t(pages), std::vector<float>(std::size_t(page + 5)));
    std::vector<Fence> fences;
    for (std::vector<float>& one : came) {
      fences.push_back(ask_for(x, std::span<float>(one)));
      gpu.device.kernels().fill(x, double(fences.size()) + 1);
    }
    for (std::size_t i = 0; i < came.size(); ++i) {
      fences[i].wait();
      ASSERT_EQ(came[i], std::vector<float>(std::size_t(page + 5), float(i + 1))) << i;
    }
  }
}

// What a fence promises is there behind it, whatever else is under way; the rest may wait.
TEST_P(Conformance, copies_down_no_more_than_was_waited_for) {
  Paced gpu(emulated::lazy);
  const Tensor x = from_host<float>(gpu.device, {2}, std::vector<float>{1, 1});
  std::vector<float> first(2), second(2);
  const Fence early = ask_for(x, std::span<float>(first));
  gpu.device.kernels().fill(x, 2);
  const Fence late = ask_for(x, std::span<float>(second));
  early.wait();
  EXPECT_EQ(first, (std::vector<float>{1, 1}));
  EXPECT_EQ(second, (std::vector<float>{0, 0}));
  late.wait();
  EXPECT_EQ(second, (std::vector<float>{2, 2}));
}

// The fake device comes forward where it is asked whether it has got somewhere, so it never needs the last
// page.
TEST_P(Conformance, copies_up_without_a_wait_where_pages_are_enough) {
  Paced gpu(emulated::lazy);
  const std::vector<float> whole(std::size_t(page), 1);
  const Tensor x = empty(gpu.device, {page});
  const std::uint64_t before = emulated::meter().host_waits;
  for (std::int64_t i = 0; i < pages; ++i) copy_to<float>(x, whole);
  EXPECT_EQ(emulated::meter().host_waits, before);
}

}  // namespace
}  // namespace weft::conformance
