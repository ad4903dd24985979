// Mistakes in kernels, each of which the emulated GPU must find under every order, and a kernel without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backend/faulty.h"
#include "tests/backend/gpu_trial.h"
#include "tests/support/refused.h"
#include "weft/backend/cuda/launch.h"

namespace weft::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

struct Planted {
  Mistake mistake;
  const char* name;
  const char* said;
};

class GpuFaults : public ::testing::TestWithParam<Planted> {};

void sum_four_rows(Mistake mistake) {
  const Array x(counted(4 * 256)), out(4 * 256);
  sums(nullptr, mistake, out.data(), x.data(), 4);
  cudaDeviceSynchronize();
}

TEST_P(GpuFaults, are_found_under_every_order) {
  const auto found = found_by([] { sum_four_rows(GetParam().mistake); });
  EXPECT_THAT(found, Each(HasSubstr(GetParam().said)));
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, GpuFaults,
    ::testing::Values(Planted{Mistake::no_barrier, "no_barrier", "with no barrier between"},
                      Planted{Mistake::no_barrier_after, "no_barrier_after", "with no barrier between"},
                      Planted{Mistake::one_too_far, "one_too_far", "outside of what was allocated"},
                      Planted{Mistake::shared_too_far, "shared_too_far", "outside of what was allocated"},
                      Planted{Mistake::wide_mask, "wide_mask", "the block is stuck"},
                      Planted{Mistake::narrow_mask, "narrow_mask", "a lane that its mask leaves out"},
                      Planted{Mistake::divergent, "divergent", "faulty.cu"},
                      Planted{Mistake::never_written, "never_written", "which nobody has written"},
                      Planted{Mistake::no_wait, "no_wait", "an asynchronous copy is under way"},
                      Planted{Mistake::no_barrier_before_refill, "refill", "with no barrier between"},
                      Planted{Mistake::unaligned, "unaligned", "is not aligned"},
                      Planted{Mistake::two_blocks, "two_blocks", "has written"}),
    [](const auto& about) { return about.param.name; });

TEST(GpuFaults, are_not_found_where_there_are_none) {
  EXPECT_THAT(found_by([] { sum_four_rows(Mistake::none); }), Each(std::string()));
}

// The lane that writes has read too, last of all or not.
TEST(GpuFaults, are_found_among_the_lanes_of_a_warp) {
  const auto found = [](bool ordered) {
    return found_by([=] {
      const Array x(counted(1)), out(32);
      hand_round(nullptr, ordered, out.data(), x.data());
      cudaDeviceSynchronize();
    });
  };
  EXPECT_THAT(found(false), Each(HasSubstr("with no barrier between")));
  EXPECT_THAT(found(true), Each(std::string()));
}

// The emulator remembers whole words for as long as it can.
TEST(GpuFaults, are_found_in_halves_of_words_and_are_none_beside_them) {
  const auto found = [](Then then, bool ordered) {
    return found_by([=] {
      const Array x(counted(1)), out(1);
      share_word(nullptr, then, ordered, out.data(), x.data());
      cudaDeviceSynchronize();
    });
  };
  EXPECT_THAT(found(Then::nothing, false), Each(std::string()));
  for (const Then then : {Then::read_half, Then::read_word, Then::write_word}) {
    EXPECT_THAT(found(then, false), Each(HasSubstr("with no barrier between"))) << int(then);
    EXPECT_THAT(found(then, true), Each(std::string())) << int(then);
  }
}

TEST(GpuFaults, are_not_hidden_by_a_pointer_of_the_host) {
  std::vector<float> mine(1024);
  const auto found = found_by([&] {
    const Array out(4);
    sums(nullptr, Mistake::none, out.data(), mine.data(), 4);
    cudaDeviceSynchronize();
  });
  EXPECT_THAT(found, Each(HasSubstr("memory of the host")));
}

TEST(GpuFaults, name_the_line_of_the_kernel) {
  const auto found = found_by([] { sum_four_rows(Mistake::never_written); });
  EXPECT_THAT(found, Each(HasSubstr("faulty.cu:")));
}

// It never runs, so this is the only time to say so.
TEST(GpuFaults, are_launches_that_no_gpu_takes) {
  const auto launch = [](cudaStream_t stream, std::int64_t blocks) {
    return refused([&] { copy(stream, nullptr, nullptr, int(blocks * 128)); });
  };
  EXPECT_EQ(launch(nullptr, 0),
            "cuda: the GPU refuses a launch of 0 blocks of 128 threads with 0 bytes of shared memory: "
            "invalid configuration argument");
  emulated::set_cards({.count = 2, .shared = 64});
  EXPECT_THAT(refused([] { sums(nullptr, Mistake::none, nullptr, nullptr, 1); }),
              HasSubstr(" bytes of shared memory: invalid argument"));
  cudaStream_t others = nullptr;
  cudaSetDevice(1);
  cudaStreamCreateWithFlags(&others, cudaStreamNonBlocking);
  cudaSetDevice(0);
  EXPECT_THAT(launch(others, 1), HasSubstr("invalid resource handle"));
  emulated::set_cards({});
}

// A number of blocks that has no room in 32 bits is not cut to one that has.
TEST(GpuFaults, are_grids_of_more_blocks_than_there_can_be) {
  EXPECT_THAT(refused([] {
                gpu::blocks_of({(std::int64_t(1) << 32) + 1, 32});
              }),
              HasSubstr("a launch of 4294967297 blocks of 32 threads"));
}

}  // namespace
}  // namespace weft::testing
