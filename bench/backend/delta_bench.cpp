// The delta rule and state spaces beside a large product of f32 with the same threads in the same process, in
// turn: their share of that rate. What counts is what a recurrence step by step would multiply, of the delta
// rule three products of a head's memory forward and eight backward, of a state space two and five; what
// chunks multiply beyond that is their own affair.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "weft/backend/cpu/fast/delta.h"
#include "weft/backend/open.h"
#include "weft/tensor/kernels.h"

namespace weft {
namespace {

constexpr std::int64_t g = 8, large = 2048;

/// Of all threads of the process: where others compute on the machine, the clock on the wall tells of them.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}
struct Seconds {
  double wall, busy;
};
Seconds seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  const double busy = processor_seconds();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          processor_seconds() - busy};
}
double least(const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); }
double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + std::ptrdiff_t(x.size() / 2), x.end());
  return x[x.size() / 2];
}

Tensor normal(Device& device, const Shape& shape, Dtype dtype, float deviation = 1) {
  const Tensor out = empty(device, shape, dtype);
  device.kernels().random_normal(out.view({shape.elements() / shape[-1], shape[-1]}), 0, deviation,
                                 {{}, 0, 0, shape[-1]});
  return out;
}

struct Case {
  std::int64_t s, r, d, d_value;
  bool corrects;  // else it is a state space
  Dtype dtype = Dtype::f32;
  bool backward = false;

  double products() const { return corrects ? (backward ? 8 : 3) : (backward ? 5 : 2); }
  std::string title() const {
    return std::string(corrects ? "rule/" : "state/") + name(dtype) + (backward ? "/backward" : "/forward") +
           (corrects ? "/d" + std::to_string(d) : "/r" + std::to_string(r));
  }
};

DeltaIn operands(Device& device, const Case& c) {
  const float size = 1 / std::sqrt(float(c.d));
  const Shape numbers{c.s, 1, g, c.r};
  return {.q = normal(device, {c.s, 1, g, c.d}, c.dtype, size),
          .k = normal(device, {c.s, 1, g, c.d}, c.dtype, size),
          .v = normal(device, {c.s, 1, g, c.r, c.d_value}, c.dtype),
          .decay = normal(device, numbers, c.dtype),
          .rate = c.corrects ? normal(device, numbers, c.dtype) : Tensor(),
          .speed = normal(device, {g, c.r}, Dtype::f32),
          .shift = normal(device, {g, c.r}, Dtype::f32),
          .skip = c.corrects ? Tensor() : normal(device, {g, c.r}, Dtype::f32),
          .scale = size};
}
DeltaGrads gradients(Device& device, const DeltaIn& in) {
  const auto of_heads = [&] { return normal(device, in.speed.shape(), Dtype::f32); };
  return {.dq = empty_like(in.q),
          .dk = empty_like(in.k),
          .dv = empty_like(in.v),
          .ddecay = empty_like(in.decay),
          .drate = in.corrects() ? empty_like(in.rate) : Tensor(),
          .dspeed = of_heads(),
          .dshift = of_heads(),
          .dskip = in.corrects() ? Tensor() : of_heads()};
}

void run(benchmark::State& state, Device& device, const Case& c) {
  const DeltaIn in = operands(device, c);
  const Tensor o = empty_like(in.v), dout = normal(device, in.v.shape(), c.dtype);
  const DeltaGrads grads = gradients(device, in);
  const Tensor a = normal(device, {large, large}, Dtype::f32), b = normal(device, {large, large}, Dtype::f32),
               product = empty_like(a);
  const auto work = [&] {
    if (c.backward)
      device.kernels().delta_rule_backward(grads, dout, in);
    else
      device.kernels().delta_rule(o, in);
  };
  work();
  device.kernels().matmul(product, a, b, {});
  std::vector<double> wall, busy, busy_products, products;
  for (auto _ : state) {
    const Seconds ours = seconds_of(work);
    const Seconds theirs = seconds_of([&] { device.kernels().matmul(product, a, b, {}); });
    wall.push_back(ours.wall);
    busy.push_back(ours.busy);
    products.push_back(theirs.wall);
    busy_products.push_back(theirs.busy);
    state.SetIterationTime(ours.wall);
  }
  const double flops = c.products() * 2 * double(c.s * g * c.r * c.d * c.d_value);
  const double limit = 2 * double(large) * double(large) * double(large);
  state.counters["GFLOP/s"] = flops / median(wall) / 1e9;
  state.counters["product"] = limit / median(products) / 1e9;
  state.counters["share"] = flops / median(wall) / (limit / median(products));
  // Of the turns that others disturbed least.
  state.counters["best"] = flops / least(busy) / (limit / least(busy_products));
  state.counters["busy"] = flops / median(busy) / (limit / median(busy_products));
  const std::int64_t bytes = c.backward ? fast::delta_backward_workspace(grads, dout, in, device.threads())
                                        : fast::delta_workspace(o, in, device.threads());
  state.counters["workspace_MiB"] = double(bytes) / double(1 << 20);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  using namespace weft;
  const std::unique_ptr<Device> device = open_device("cpu", {});
  for (Case c : {Case{2048, 2, 64, 64, true}, Case{2048, 2, 128, 128, true}, Case{4096, 8, 128, 64, false},
                 Case{4096, 16, 128, 64, false}})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const bool backward : {false, true}) {
        c.dtype = dtype;
        c.backward = backward;
        benchmark::RegisterBenchmark(c.title().c_str(),
                                     [&, c](benchmark::State& state) { run(state, *device, c); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond)
            ->Iterations(9);
      }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
