// Terms of four bits against their sums in plain loops of double.
#include "weft/optim/block_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/numbers.h"
#include "weft/backend/open.h"
#include "weft/base/random.h"
#include "weft/comm/counted.h"
#include "weft/comm/threads.h"
#include "weft/mesh/mesh.h"
#include "weft/tensor/host.h"

using namespace weft;

namespace {

constexpr std::int64_t one_share = 1000;
constexpr BlockCode four_bits{.bits = 4, .block = 64};

std::vector<float> term_of(int rank, int ranks) {
  const Draw draw({.seed = 5, .purpose = Purpose::test, .step = std::uint64_t(rank)});
  std::vector<float> out(std::size_t(one_share * ranks));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = draw.normal(i);
  return out;
}

/// What a block of four bits leaves of numbers, in double.
void round_share(std::vector<double>& x) {
  for (std::size_t at = 0; at < x.size(); at += std::size_t(four_bits.block)) {
    const std::size_t end = std::min(at + std::size_t(four_bits.block), x.size());
    double greatest = 0;
    for (std::size_t i = at; i < end; ++i) greatest = std::max(greatest, std::abs(x[i]));
    for (std::size_t i = at; i < end; ++i) x[i] = std::nearbyint(x[i] / (greatest / 7)) * (greatest / 7);
  }
}

/// The sum of these ranks' terms of a share, each rounded.
std::vector<double> rounded_sum(const std::vector<int>& of, int whose, int ranks) {
  std::vector<double> sum(std::size_t(one_share), 0);
  for (const int rank : of) {
    const std::vector<float> term = term_of(rank, ranks);
    std::vector<double> mine(term.begin() + whose * one_share, term.begin() + (whose + 1) * one_share);
    round_share(mine);
    for (std::size_t i = 0; i < mine.size(); ++i) sum[i] += mine[i];
  }
  return sum;
}

/// In one hop, or by near ranks first.
std::vector<double> expected(int rank, int ranks, int near) {
  if (near == 1) {
    std::vector<int> all;
    for (int r = 0; r < ranks; ++r) all.push_back(r);
    return rounded_sum(all, rank, ranks);
  }
  std::vector<double> sum(std::size_t(one_share), 0);
  for (int first = 0; first < ranks; first += near) {
    std::vector<int> some;
    for (int r = first; r < first + near; ++r) some.push_back(r);
    std::vector<double> term = rounded_sum(some, rank, ranks);
    round_share(term);
    for (std::size_t i = 0; i < term.size(); ++i) sum[i] += term[i];
  }
  return sum;
}

/// But for ties of the second rounding, which small integers make (half of 6 and 4 is 3 and 2) and f32 may
/// see on the other side: those part by a step of a block.
void expect_alike(const std::vector<double>& found, const std::vector<double>& expected, int ties) {
  double greatest = 0;
  for (const double x : expected) greatest = std::max(greatest, std::abs(x));
  int parted = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double by = std::abs(found[i] - expected[i]);
    parted += by > 1e-5 ? 1 : 0;
    EXPECT_LT(by, 1.01 * greatest / 7) << i;
  }
  EXPECT_LE(parted, ties);
}

struct Traded {
  std::vector<double> sum;
  std::int64_t bytes = 0;
};

Traded traded(Communicator& world, int near) {
  const auto device = open_device("cpu", {.threads = 1});
  CountedCommunicator counts(world);
  Sent sent;
  counts.charge_here(sent);
  const int ranks = world.size();
  const ProcessMesh mesh(ParallelLayout({.dp = ranks}), counts);
  Readers readers{.circle = &mesh.along(Axis::dp), .so_far = CutUp::weights};
  if (near > 1) readers.near = &mesh.neighbours(Axis::dp, near);
  if (near > 1) readers.far = &mesh.beyond(Axis::dp, near);
  const std::vector<std::int64_t> ones(std::size_t(ranks), 1);
  BlockSum sum;
  sum.set_out(readers, from_host(*device, {one_share * ranks}, term_of(world.rank(), ranks)), four_bits,
              ones);
  return {numbers(sum.arrive()), sent.of(Traffic::traded)};
}

}  // namespace

// A share of n numbers is n / 2 bytes and four for each block: to everybody, or to whoever is near, for all
// who have its place, and from there once to each of those.
TEST(BlockSum, is_the_sum_of_rounded_terms_and_sends_half_a_byte_a_number) {
  constexpr std::int64_t bytes = one_share / 2 + 4 * ((one_share + 63) / 64);
  for (const auto& [ranks, near] : {std::pair{2, 1}, {3, 1}, {4, 1}, {4, 2}, {6, 2}, {6, 3}, {8, 4}})
    run_as_threads(ranks, [&, ranks = ranks, near = near](Communicator& world) {
      const Traded here = traded(world, near);
      expect_alike(here.sum, expected(world.rank(), ranks, near), near == 1 ? 0 : 10);
      EXPECT_EQ(here.bytes, near == 1 ? (ranks - 1) * bytes
                                      : (near - 1) * (ranks / near) * bytes + (ranks / near - 1) * bytes);
    });
}

TEST(BlockSum, is_nan_where_a_term_is_not_finite) {
  run_as_threads(2, [](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    const Readers readers{.circle = &world, .so_far = CutUp::gradients};
    const std::vector<std::int64_t> ones{1, 1};
    const float odd = world.rank() == 1 ? std::numeric_limits<float>::infinity() : 1.F;
    BlockSum sum;
    sum.set_out(readers, from_host(*device, {8}, std::vector<float>{1, 1, 1, odd, 1, 1, 1, 1}),
                {.bits = 4, .block = 2}, ones);
    const std::vector<double> here = numbers(sum.arrive());
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(here[i]), world.rank() == 0 && i > 1) << i;
  });
}
