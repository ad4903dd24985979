// Attention's share of the rate that oneDNN reaches at a large product of the same type, in the same process.
// Of a causal mask only the half that is seen counts: two products forward, five more backward. Encoders see
// all; beside that stand the same with half of every row as padding, and with biases of relative positions.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "weft/backend/cpu/device.h"
#include "weft/backend/cpu/fast/attention.h"
#include "weft/base/random.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// Of the clock on the wall, and of all this process's threads together: where others compute on the machine,
/// only the second is ours.
struct Seconds {
  double wall = 0, cpu = 0;
};

Seconds now() {
  timespec cpu{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
          double(cpu.tv_sec) + 1e-9 * double(cpu.tv_nsec)};
}

Seconds seconds_of(const auto& work) {
  const Seconds start = now();
  work();
  const Seconds end = now();
  return {end.wall - start.wall, end.cpu - start.cpu};
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

Seconds medians(const std::vector<Seconds>& all) {
  std::vector<double> wall, cpu;
  for (const Seconds& s : all) {
    wall.push_back(s.wall);
    cpu.push_back(s.cpu);
  }
  return {median(wall), median(cpu)};
}

constexpr dnnl::memory::dim large = 2048;

/// oneDNN's time for [large, large] x [large, large]: what attention is measured against.
Seconds product_time(Dtype dtype) {
  const auto type = dtype == Dtype::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::memory::desc plain({large, large}, type, dnnl::memory::format_tag::ab);
  const dnnl::memory a(plain, engine), b(plain, engine), c(plain, engine);
  const dnnl::matmul product({{plain, plain, plain}, engine});
  std::vector<Seconds> times;
  for (int i = 0; i < 6; ++i) {
    const Seconds once = seconds_of([&] {
      product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
      stream.wait();
    });
    if (i > 0) times.push_back(once);
  }
  return medians(times);
}

Tensor numbers_like(Device& device, const Shape& shape, Dtype dtype) {
  std::vector<float> values(std::size_t(shape.elements()));
  fill_normal(Draw({.seed = 1, .purpose = Purpose::test}), 0, values);
  if (dtype == Dtype::f32) return from_host<float>(device, shape, values);
  std::vector<bf16> narrow(values.begin(), values.end());
  return from_host<bf16>(device, shape, narrow);
}

enum class Look { causal, open, padded, biased };

struct Case {
  std::int64_t s, d;
  Dtype dtype;
  bool backward;
  Look look = Look::causal;
};

struct AttentionCall {
  Attended in;
  Tensor dout;
  AttentionOut out;
  AttentionGrads grads;
  AttentionArgs how;
};

std::int64_t rows_of(const Case& c) { return c.s <= 1024 ? 2 : 1; }
std::int64_t heads_of(const Case& c) { return 768 / c.d; }

AttentionCall make(Device& device, const Case& c) {
  const Shape shape = {c.s, rows_of(c), heads_of(c), 1, c.d}, keys = {c.s, rows_of(c), heads_of(c), c.d};
  AttentionCall job;
  job.in = {numbers_like(device, shape, c.dtype), numbers_like(device, keys, c.dtype),
            numbers_like(device, keys, c.dtype)};
  job.dout = numbers_like(device, shape, c.dtype);
  job.out = {empty_like(job.in.q), empty(device, {rows_of(c), heads_of(c), c.s})};
  job.grads = {.dq = empty_like(job.in.q), .dk = empty_like(job.in.k), .dv = empty_like(job.in.v)};
  job.how = {.scale = 1 / std::sqrt(float(c.d)), .mask = c.look == Look::causal ? Mask::causal : Mask::none};
  if (c.look == Look::padded) {
    std::vector<std::int32_t> there;
    for (std::int64_t i = 0; i < rows_of(c) * c.s; ++i) there.push_back(i % c.s < c.s / 2 ? 0 : -1);
    job.how.query_segments = job.how.key_segments = from_host(device, {rows_of(c), c.s}, there);
  }
  if (c.look == Look::biased) {
    job.how.bias = numbers_like(device, {heads_of(c), 2 * c.s - 1}, Dtype::f32);
    job.how.bias0 = c.s - 1;
    job.grads.dbias = empty_like(job.how.bias);
  }
  return job;
}

void report(benchmark::State& state, const Case& c, const std::vector<Seconds>& times, int threads) {
  const double all = double(c.s) * double(c.s);
  const double seen = c.look == Look::causal   ? double(c.s) * double(c.s + 1) / 2
                      : c.look == Look::padded ? all / 4
                                               : all;
  const double operations = (c.backward ? 7 : 2) * 2 * seen * double(c.d) * double(rows_of(c) * heads_of(c));
  const Seconds ours = medians(times), theirs = product_time(c.dtype);
  const double product = 2 * double(large) * double(large) * double(large);
  state.counters["GFLOP/s"] = operations / ours.wall / 1e9;
  state.counters["oneDNN"] = product / theirs.wall / 1e9;
  state.counters["share_%"] = 100 * operations / ours.wall * theirs.wall / product;
  state.counters["cpu_GFLOP/s"] = operations / ours.cpu / 1e9 * threads;
  state.counters["cpu_oneDNN"] = product / theirs.cpu / 1e9 * threads;
  state.counters["cpu_share_%"] = 100 * operations / ours.cpu * theirs.cpu / product;
}

void run(benchmark::State& state, CpuDevice& device, const Case& c) {
  const AttentionCall job = make(device, c);
  const fast::AttentionLoops& loops = fast::attention_loops(fast::best_here());
  const auto once = [&] {
    fast::attention(loops, job.out, job.in, job.how);
    if (c.backward) fast::attention_backward(loops, job.grads, job.dout, job.out, job.in, job.how);
  };
  once();
  std::vector<Seconds> times;
  for (auto _ : state) {
    times.push_back(seconds_of(once));
    state.SetIterationTime(times.back().wall);
  }
  report(state, c, times, device.threads());
  const std::int64_t bytes =
      c.backward ? fast::attention_backward_workspace(job.grads, job.in, job.how, device.threads())
                 : fast::attention_workspace(job.in, job.how, device.threads());
  state.counters["workspace_MiB"] = double(bytes) / double(1 << 20);
}

std::string name_of(const Case& c) {
  return std::string(name(c.dtype)) + (c.backward ? "/both" : "/forward") + "/s" + std::to_string(c.s) +
         "/d" + std::to_string(c.d) +
         (c.look == Look::open     ? "/open"
          : c.look == Look::padded ? "/padded"
          : c.look == Look::biased ? "/biased"
                                   : "");
}

void add(CpuDevice& device, const Case& c) {
  benchmark::RegisterBenchmark(name_of(c).c_str(),
                               [&device, c](benchmark::State& state) { run(state, device, c); })
      ->UseManualTime()
      ->Iterations(5)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  weft::CpuDevice device;
  for (const weft::Dtype dtype : {weft::Dtype::f32, weft::Dtype::bf16})
    for (const bool backward : {false, true}) {
      for (const std::int64_t s : {1024, 4096})
        for (const std::int64_t d : {64, 128}) weft::add(device, {s, d, dtype, backward});
      for (const weft::Look look : {weft::Look::open, weft::Look::padded, weft::Look::biased})
        weft::add(device, {512, 64, dtype, backward, look});
    }
  benchmark::RunSpecifiedBenchmarks();
}
