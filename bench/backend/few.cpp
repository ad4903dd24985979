// bench_few [f32|bf16|f16 [THREADS [MEBIBYTES]]]: products of few rows, x [m, k] W^T, with weights that come
// from memory: as many W as so many MiB hold (256; with 0 a single one, which stays in a cache), one after
// the other, in turn with a plain reading of the same W by as many threads. Prints a table: GB of weights a
// second (medians), by the clock on the wall and by processor time, and the ratio of these.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "weft/backend/cpu/device.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"

namespace weft {
namespace {

constexpr int turns = 7;

double wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Where others use the machine too, the clock on the wall tells of them.
double busy() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

struct Times {
  std::vector<double> walls, busys;
  template <class Work>
  void take(const Work& work) {
    const double w = wall(), b = busy();
    work();
    walls.push_back(wall() - w);
    busys.push_back(busy() - b);
  }
};

/// Eight sums of eight words: a line at a time, as fast as lines come.
std::uint64_t read_all(const Tensor& w) {
  const auto* words = static_cast<const std::uint64_t*>(w.address());
  std::uint64_t sums[8] = {};
  for (std::int64_t i = 0; i + 8 <= w.bytes() / 8; i += 8)
    for (int j = 0; j < 8; ++j) sums[j] += words[i + j];
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all += sum;
  return all;
}

struct Few {
  CpuDevice& device;
  Dtype dtype;
  std::int64_t bytes_of_weights;

  void measure(std::int64_t n, std::int64_t k) const {
    const std::int64_t count = std::max<std::int64_t>(bytes_of_weights / (n * k * size_of(dtype)), 1);
    std::vector<Tensor> weights;
    for (std::int64_t i = 0; i < count; ++i) weights.push_back(ops::zeros(device, {n, k}, dtype));
    for (const std::int64_t m : {1, 2, 4, 6, 8, 9, 12, 16}) measure(weights, m);
  }

  void measure(const std::vector<Tensor>& weights, std::int64_t m) const {
    const std::int64_t n = weights[0].dim(0), k = weights[0].dim(1);
    const Tensor x = ops::zeros(device, {m, k}, dtype), y = ops::zeros(device, {m, n}, dtype);
    const std::int64_t all_bytes = std::int64_t(weights.size()) * weights[0].bytes();
    const int repeats = int(std::max<std::int64_t>(1, (std::int64_t{64} << 20) / all_bytes));
    Times product, plain;
    std::uint64_t all = 0;
    for (int turn = 0; turn < turns; ++turn) {
      product.take([&] {
        for (int again = 0; again < repeats; ++again)
          for (const Tensor& w : weights) ops::matmul_into(y, x, w, {.b = Read::transposed});
      });
      plain.take([&] {
        for (int again = 0; again < repeats; ++again)
#pragma omp parallel for num_threads(device.threads()) reduction(+ : all)
          for (std::size_t i = 0; i < weights.size(); ++i) all += read_all(weights[i]);
      });
    }
    const double gigabytes =
        double(repeats) * double(std::int64_t(weights.size()) * weights[0].bytes()) / 1e9;
    std::printf("| %s | %ld | %ld | %ld | %.1f | %.1f | %.1f | %.1f | %.0f %% |%s\n", name(dtype), long(n),
                long(k), long(m), gigabytes / median(product.walls), gigabytes / median(product.busys),
                gigabytes / median(plain.walls), gigabytes / median(plain.busys),
                100 * median(plain.busys) / median(product.busys), all == 1 ? " " : "");
    std::fflush(stdout);
  }
};

void measure_all(Dtype dtype, int threads, std::int64_t mebibytes) {
  CpuDevice device({.threads = threads});
  std::printf("| type | n | k | m | product, wall | busy | reading, wall | busy | ratio |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  const Few few{device, dtype, mebibytes << 20};
  few.measure(128, 1024);
  few.measure(1024, 1024);
  few.measure(3072, 1024);
  few.measure(1024, 3072);
  few.measure(3072, 768);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  const std::string type = argc > 1 ? argv[1] : "f32";
  const weft::Dtype dtype = type == "bf16"  ? weft::Dtype::bf16
                            : type == "f16" ? weft::Dtype::f16
                                            : weft::Dtype::f32;
  weft::measure_all(dtype, argc > 2 ? std::atoi(argv[2]) : 1, argc > 3 ? std::atoi(argv[3]) : 256);
}
