// Attention's share of the rate that oneDNN reaches at a large product of the same type, in the same process.
// Of a causal mask only the half that is seen counts: two products forward, five more backward.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <dnnl.hpp>
#include <map>
#include <string>
#include <vector>

#include "weft/backend/cpu/device.h"
#include "weft/backend/cpu/fast/attention.h"
#include "weft/base/random.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Operations a second of [n, n] x [n, n], the best of many: what attention is measured against.
double product_rate(Dtype dtype) {
  const dnnl::memory::dim n = 2048;
  const auto type = dtype == Dtype::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::memory::desc plain({n, n}, type, dnnl::memory::format_tag::ab);
  const dnnl::memory a(plain, engine), b(plain, engine), c(plain, engine);
  const dnnl::matmul product({{plain, plain, plain}, engine});
  double best = 1e30;
  for (int i = 0; i < 12; ++i)
    best = std::min(best, seconds_of([&] {
                      product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
                      stream.wait();
                    }));
  return 2.0 * double(n) * double(n) * double(n) / best;
}

Tensor numbers_like(Device& device, const Shape& shape, Dtype dtype) {
  std::vector<float> values(std::size_t(shape.elements()));
  fill_normal(Draw({.seed = 1, .purpose = Purpose::test}), 0, values);
  if (dtype == Dtype::f32) return from_host<float>(device, shape, values);
  std::vector<bf16> narrow(values.begin(), values.end());
  return from_host<bf16>(device, shape, narrow);
}

struct Case {
  std::int64_t s, d;
  Dtype dtype;
  bool backward;
};

void run(benchmark::State& state, CpuDevice& device, const Case& c, double rate) {
  const std::int64_t b = c.s <= 1024 ? 2 : 1, heads = 768 / c.d;
  const Shape shape = {c.s, b, heads, 1, c.d}, keys = {c.s, b, heads, c.d};
  const Attended in = {numbers_like(device, shape, c.dtype), numbers_like(device, keys, c.dtype),
                       numbers_like(device, keys, c.dtype)};
  const Tensor dout = numbers_like(device, shape, c.dtype);
  const AttentionOut out = {empty_like(in.q), empty(device, {b, heads, c.s})};
  const AttentionGrads grads = {.dq = empty_like(in.q), .dk = empty_like(in.k), .dv = empty_like(in.v)};
  const AttentionArgs how = {.scale = 1 / std::sqrt(float(c.d)), .mask = Mask::causal};
  const fast::AttentionLoops& loops = fast::attention_loops(fast::best_here());
  std::vector<double> times;
  for (auto _ : state) {
    const double now = seconds_of([&] {
      fast::attention(loops, out, in, how);
      if (c.backward) fast::attention_backward(loops, grads, dout, out, in, how);
    });
    state.SetIterationTime(now);
    times.push_back(now);
  }
  std::sort(times.begin(), times.end());
  const double products = c.backward ? 7 : 2;
  const double seen = double(c.s) * double(c.s + 1) / 2;
  const double operations = products * 2 * seen * double(c.d) * double(b * heads);
  const double reached = operations / times[times.size() / 2];
  state.counters["GFLOP/s"] = reached / 1e9;
  state.counters["share_%"] = 100 * reached / rate;
  state.counters["spread_%"] =
      100 * (times[times.size() * 3 / 4] - times[times.size() / 4]) / times[times.size() / 2];
  state.counters["workspace_MiB"] =
      double(c.backward ? fast::attention_backward_workspace(grads, in, how, device.threads())
                        : fast::attention_workspace(in, how, device.threads())) /
      double(1 << 20);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  weft::CpuDevice device;
  std::map<weft::Dtype, double> rates;
  for (const weft::Dtype dtype : {weft::Dtype::f32, weft::Dtype::bf16}) {
    rates[dtype] = weft::product_rate(dtype);
    benchmark::AddCustomContext(std::string("oneDNN_GFLOP/s_") + weft::name(dtype),
                                std::to_string(rates[dtype] / 1e9));
  }
  for (const weft::Dtype dtype : {weft::Dtype::f32, weft::Dtype::bf16})
    for (const bool backward : {false, true})
      for (const std::int64_t s : {1024, 4096})
        for (const std::int64_t d : {64, 128}) {
          const weft::Case c = {s, d, dtype, backward};
          const std::string name = std::string(weft::name(dtype)) + (backward ? "/both" : "/forward") + "/s" +
                                   std::to_string(s) + "/d" + std::to_string(d);
          const double rate = rates[dtype];
          benchmark::RegisterBenchmark(
              name.c_str(),
              [&device, c, rate](benchmark::State& state) { weft::run(state, device, c, rate); })
              ->UseManualTime()
              ->Iterations(7)
              ->Unit(benchmark::kMillisecond);
        }
  benchmark::RunSpecifiedBenchmarks();
}
