// An all-reduce of 64 MiB among 2 thread ranks, beside a copy of as many bytes by the same ranks: both read
// and write every rank's bytes once, so the copy's time is the bound.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "weft/backend/open.h"
#include "weft/base/clock.h"
#include "weft/comm/threads.h"
#include "weft/tensor/kernels.h"

namespace weft {
namespace {

constexpr int ranks = 2, rounds = 25;
constexpr std::int64_t bytes = std::int64_t{64} << 20;

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

template <class Work>
double seconds(Communicator& world, const Work& work) {
  world.barrier();
  const Stopwatch watch;
  work();
  world.barrier();
  return watch.seconds();
}

void measure(Communicator& world, Dtype dtype) {
  const auto device = open_device("cpu", {.threads = 1});
  const Shape shape{bytes / std::int64_t(size_of(dtype))};
  const Tensor x = empty(*device, shape, dtype);
  const Tensor y = empty(*device, shape, dtype);
  device->kernels().fill(x, 0);
  device->kernels().fill(y, 0);
  std::vector<double> copies, sums, shares;
  for (int round = -2; round < rounds; ++round) {
    const double copy = seconds(world, [&] { device->kernels().copy(y, x); });
    const double sum = seconds(world, [&] { world.all_reduce(x, Reduce::sum).wait(); });
    if (round < 0) continue;
    copies.push_back(copy);
    sums.push_back(sum);
    shares.push_back(copy / sum);
  }
  if (world.rank() > 0) return;
  const double moved = 2.0 * double(ranks * bytes);
  std::printf("| %s | %.2f | %.2f | %.0f %% |\n", dtype == Dtype::f32 ? "f32" : "bf16",
              moved / median(copies) / 1e9, moved / median(sums) / 1e9, 100 * median(shares));
}

}  // namespace
}  // namespace weft

int main() {
  std::printf("| 64 MiB of | copy, GB/s | all-reduce, GB/s | share |\n|---|---|---|---|\n");
  weft::run_as_threads(weft::ranks, [](weft::Communicator& world) {
    for (const weft::Dtype dtype : {weft::Dtype::f32, weft::Dtype::bf16}) weft::measure(world, dtype);
  });
}
