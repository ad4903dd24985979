// What a small operation costs beside its arithmetic: 16 x 16, through ops, into memory that is there and
// new.
#include <benchmark/benchmark.h>

#include "weft/backend/cpu/device.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"
#include "weft/ops/norm.h"

namespace {

using namespace weft;

struct Small {
  CpuDevice device;
  Tensor a = ops::zeros(device, {16, 16});
  Tensor b = ops::zeros(device, {16, 16});
  Tensor out = ops::zeros(device, {16, 16});
};

void allocate(benchmark::State& state) {
  Small s;
  for (auto _ : state) benchmark::DoNotOptimize(empty(s.device, {16, 16}));
}
BENCHMARK(allocate);

void add(benchmark::State& state) {
  Small s;
  for (auto _ : state) ops::add_into(s.out, s.a, s.b);
}
BENCHMARK(add);

void matmul(benchmark::State& state) {
  Small s;
  for (auto _ : state) ops::matmul_into(s.out, s.a, s.b);
}
BENCHMARK(matmul);

void matmul_into_new_memory(benchmark::State& state) {
  Small s;
  for (auto _ : state) benchmark::DoNotOptimize(ops::matmul(s.a, s.b));
}
BENCHMARK(matmul_into_new_memory);

void norm(benchmark::State& state) {
  Small s;
  const NormWeights weights{ops::zeros(s.device, {16}), ops::zeros(s.device, {16})};
  for (auto _ : state) benchmark::DoNotOptimize(ops::norm(s.a, weights, {}));
}
BENCHMARK(norm);

void open_device_exact(benchmark::State& state) {
  for (auto _ : state) {
    CpuDevice device({.exact = true});
    benchmark::DoNotOptimize(device.exact());
  }
}
BENCHMARK(open_device_exact)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

void open_device_fast(benchmark::State& state) {
  for (auto _ : state) {
    CpuDevice device;
    benchmark::DoNotOptimize(device.exact());
  }
}
BENCHMARK(open_device_fast)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace

BENCHMARK_MAIN();
