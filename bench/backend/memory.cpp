// What moves memory, beside a copy of the same memory with the same threads in the same process: each turn
// copies, then computes, then does the same work again and again in a cache, and the shares are those of the
// medians. Bytes are counted as they travel: what is written past the caches once, what is read and written
// in place twice. "share" is by the clock on the wall, "busy" by processor time, for which OMP_WAIT_POLICY
// must be passive. "arithmetic" is how long the rows take one thread where memory costs nothing, divided by
// the threads, and "limit" the share that the slower of the two, memory and arithmetic, would allow at best.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "weft/backend/open.h"
#include "weft/tensor/exact_sum.h"
#include "weft/tensor/host.h"
#include "weft/tensor/kernels.h"

namespace weft {
namespace {

constexpr std::int64_t t = 8192, h = 4096, v = 50304;
constexpr std::int64_t turns_in_cache = 512;  // on so many times fewer rows: 16, in f32 256 KiB an operand

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of all threads of the process. Where others use the machine too, the clock on the wall tells of them.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + std::ptrdiff_t(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// The copy that everything is measured beside, the C library's: of 134 MB in f32, a piece for each thread.
struct Yardstick {
  explicit Yardstick(Device& device) : from(empty(device, {t, h})), to(empty(device, {t, h})) {
    device.kernels().fill(from, 1);
    device.kernels().fill(to, 1);
  }
  double run() const {
    const auto* source = reinterpret_cast<const char*>(from.data<float>());
    auto* target = reinterpret_cast<char*>(to.data<float>());
    const int threads = from.device().threads();
    const std::int64_t share = from.bytes() / threads;
    return seconds([&] {
#pragma omp parallel for num_threads(threads)
      for (int i = 0; i < threads; ++i)
        std::memcpy(target + i * share, source + i * share, std::size_t(share));
    });
  }
  double bytes() const { return double(2 * from.bytes()); }
  Tensor from, to;
};

/// What a benchmark does, and the bytes it must move.
struct TimedWork {
  std::function<void()> work;
  double bytes;
};

/// The same work in memory and, on fewer rows and with one thread, in a cache.
struct TimedWorks {
  TimedWork in_memory, in_cache, half_in_cache;
  int threads;

  /// Of the rows, without what a call costs by itself.
  double arithmetic() const {
    const auto time = [](const TimedWork& job) {
      return seconds([&] {
        for (std::int64_t i = 0; i < turns_in_cache; ++i) job.work();
      });
    };
    return 2 * (time(in_cache) - time(half_in_cache)) / threads;
  }
};

void turns(benchmark::State& state, const Yardstick& copy, const TimedWorks& jobs) {
  const auto& [work, bytes] = jobs.in_memory;
  work();
  std::vector<double> arithmetic;
  std::vector<double> copies;
  std::vector<double> works;
  std::vector<double> busy_copies;
  std::vector<double> busy_works;
  for (auto _ : state) {
    const double start = processor_seconds();
    copies.push_back(copy.run());
    const double between = processor_seconds();
    works.push_back(seconds(work));
    busy_works.push_back(processor_seconds() - between);
    busy_copies.push_back(between - start);
    arithmetic.push_back(jobs.arithmetic());
    state.SetIterationTime(works.back());
  }
  const double rate = bytes / median(works);
  const double limit = copy.bytes() / median(copies);
  const double in_cache = median(arithmetic);
  state.counters["MB"] = bytes / 1e6;
  state.counters["arithmetic"] = in_cache * 1e3;
  state.counters["limit"] = std::min(1.0, bytes / limit / in_cache);
  state.counters["GB/s"] = rate / 1e9;
  state.counters["copy"] = limit / 1e9;
  state.counters["share"] = rate / limit;
  state.counters["busy"] = bytes / median(busy_works) / (copy.bytes() / median(busy_copies));
}

/// Operands of one type, filled with numbers around zero.
class Bench {
 public:
  Bench(Device& device, Dtype dtype, std::int64_t rows) : t(rows), device_(&device), dtype_(dtype) {}
  const std::int64_t t;
  Kernels& kernels() const { return device_->kernels(); }
  Dtype dtype() const { return dtype_; }
  Tensor normal(const Shape& shape) const { return normal(shape, dtype_); }
  Tensor normal(const Shape& shape, Dtype dtype) const {
    const Tensor out = empty(*device_, shape, dtype);
    kernels().random_normal(out.view({shape.elements() / shape[-1], shape[-1]}), 0, 1, {{}, 0, 0, shape[-1]});
    return out;
  }
  Tensor vector() const { return normal({1, h}).view({h}); }
  template <class T>
  Tensor holding(const Shape& shape, const std::vector<T>& values) const {
    return from_host(*device_, shape, values);
  }

 private:
  Device* device_;
  Dtype dtype_;
};

using Make = std::function<TimedWork(const Bench&)>;

double sum_of_bytes(std::initializer_list<Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) bytes += double(tensor.bytes());
  return bytes;
}

TimedWork cast(const Bench& b, Dtype to) {
  const Tensor x = b.normal({b.t, h});
  const Tensor y = b.normal({b.t, h}, to);
  return {[=] { y.device().kernels().copy(y, x); }, sum_of_bytes({x, y})};
}

TimedWork add(const Bench& b) {
  const Tensor x = b.normal({b.t, h});
  const Tensor y = b.normal({b.t, h});
  const Tensor out = b.normal({b.t, h});
  return {[=] { out.device().kernels().add(out, x, y); }, sum_of_bytes({x, y, out})};
}

DropoutArgs dropout(const Bench& b, float probability) {
  DropoutArgs how{
      .probability = probability, .at = {.seed = 1, .purpose = Purpose::dropout_hidden}, .width = h};
  std::vector<std::int32_t> positions(b.t / 4);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = std::int32_t(i);
  how.samples = b.holding<std::int64_t>({4}, {1, 2, 3, 4});
  how.positions = b.holding({b.t / 4}, positions);
  return how;
}

TimedWork bias_dropout_add(const Bench& b, float probability) {
  const Tensor x = b.normal({b.t / 4, 4, h});
  const Tensor residual = b.normal({b.t / 4, 4, h});
  const Tensor out = b.normal({b.t / 4, 4, h});
  const Tensor bias = b.vector();
  const DropoutArgs how = dropout(b, probability);
  return {[=] { out.device().kernels().bias_dropout_add(out, x, bias, residual, how); },
          sum_of_bytes({x, residual, out})};
}

NormStats stats(const Bench& b, NormKind kind) {
  return {kind == NormKind::layer ? b.normal({b.t}, Dtype::f32) : Tensor(), b.normal({b.t}, Dtype::f32)};
}

TimedWork norm(const Bench& b, NormKind kind) {
  const Tensor x = b.normal({b.t, h});
  const Tensor y = b.normal({b.t, h});
  const NormWeights weights{b.vector(), kind == NormKind::layer ? b.vector() : Tensor()};
  const NormStats kept = stats(b, kind);
  return {[=] { y.device().kernels().norm(y, kept, x, weights, {.kind = kind}); }, sum_of_bytes({x, y})};
}

TimedWork norm_backward(const Bench& b, NormKind kind) {
  const Tensor x = b.normal({b.t, h});
  const Tensor dy = b.normal({b.t, h});
  const Tensor residual = b.normal({b.t, h});
  const NormStats kept = stats(b, kind);
  const Tensor gain = b.vector();
  const Tensor dgain = b.normal({1, h}, Dtype::f32).view({h});
  b.kernels().norm(dy, kept, x, {gain, {}}, {.kind = kind});
  const NormGrads grads{residual, dgain, kind == NormKind::layer ? dgain : Tensor()};
  return {[=] {
            x.device().kernels().norm_backward(grads, dy, residual, {x, kept, gain}, {.kind = kind});
          },
          sum_of_bytes({x, dy, residual, residual})};
}

TimedWork sum_norm(const Bench& b, float probability) {
  const Shape shape{b.t / 4, 4, h};
  const SumNormIn in{b.normal(shape), b.vector(), b.normal(shape), dropout(b, probability)};
  const NormStats kept = stats(b, NormKind::rms);
  const SumNormOut out{b.normal(shape), b.normal(shape), {{}, kept.rstd.view({b.t / 4, 4})}};
  const Tensor gain = b.vector();
  return {[=] {
            in.x.device().kernels().sum_norm(out, in, {gain, {}}, {.kind = NormKind::rms});
          },
          sum_of_bytes({in.x, in.residual, out.sum, out.y})};
}

TimedWork activation(const Bench& b, Activation kind) {
  const Tensor x = b.normal({b.t, h});
  const Tensor y = b.normal({b.t, h});
  const Tensor bias = b.vector();
  return {[=] { y.device().kernels().activation(y, x, bias, kind); }, sum_of_bytes({x, y})};
}

TimedWork activation_backward(const Bench& b, Activation kind) {
  const Tensor x = b.normal({b.t, h});
  const Tensor dy = b.normal({b.t, h});
  const Tensor dx = b.normal({b.t, h});
  const Tensor bias = b.vector();
  return {[=] { x.device().kernels().activation_backward(dx, dy, x, bias, kind); },
          sum_of_bytes({x, dy, dx})};
}

TimedWork gated(const Bench& b) {
  const Tensor x = b.normal({b.t, 2 * h});
  const Tensor y = b.normal({b.t, h});
  return {[=] { y.device().kernels().gated(y, x, {}, {Activation::silu}); }, sum_of_bytes({x, y})};
}

TimedWork gated_backward(const Bench& b) {
  const Tensor x = b.normal({b.t, 2 * h});
  const Tensor dy = b.normal({b.t, h});
  const Tensor dx = b.normal({b.t, 2 * h});
  return {[=] { x.device().kernels().gated_backward(dx, dy, x, {}, {Activation::silu}); },
          sum_of_bytes({x, dy, dx})};
}

/// Four taps; heads of 128 channels.
Filters filters(const Bench& b, bool biased) {
  return {b.normal({h / 128, 128, 4}), biased ? b.normal({h / 128, 128}) : Tensor()};
}
TimedWork convolve(const Bench& b, bool biased) {
  const Shape shape{b.t, 1, h / 128, 128};
  const Tensor x = b.normal(shape);
  const Tensor y = b.normal(shape);
  const Filters with = filters(b, biased);
  return {[=] { y.device().kernels().convolve(y, x, with); }, sum_of_bytes({x, y})};
}

TimedWork convolve_backward(const Bench& b, bool biased) {
  const Shape shape{b.t, 1, h / 128, 128};
  const Tensor x = b.normal(shape);
  const Tensor dy = b.normal(shape);
  const Filters with = filters(b, biased);
  const ConvolveGrads grads{b.normal(shape), b.normal({h / 128, 128, 4}, Dtype::f32),
                            biased ? b.normal({h / 128, 128}, Dtype::f32) : Tensor()};
  return {[=] { x.device().kernels().convolve_backward(grads, dy, x, with); },
          sum_of_bytes({x, dy, grads.dx})};
}

/// b's type is that of the copy that layers read.
TimedWork adam(const Bench& b) {
  const std::int64_t n = b.t * h / 2;
  const bool copied = b.dtype() != Dtype::f32;
  const AdamState state{b.normal({n / h, h}, Dtype::f32).view({n}),
                        b.normal({n / h, h}, Dtype::f32).view({n}), empty(b.normal({1, 1}).device(), {n}),
                        copied ? b.normal({n / h, h}).view({n}) : Tensor()};
  const Tensor grad = b.normal({n / h, h}, Dtype::f32).view({n});
  b.kernels().fill(state.v, 1);
  const double bytes = 2 * sum_of_bytes({state.master, state.m, state.v}) + double(grad.bytes()) +
                       (copied ? double(state.copy.bytes()) : 0);
  return {[=] { grad.device().kernels().adam(state, grad, {.rate = 1e-4F}); }, bytes};
}

/// One of the three passes over logits [1024, 50304].
TimedWork loss(const Bench& b, int pass) {
  const std::int64_t tokens = b.t / 8;
  const Tensor logits = b.normal({tokens, v});
  const auto column = [&] { return b.normal({tokens}, Dtype::f32); };
  const LossParts parts{column(), column(), column()};
  const LossTargets targets{b.holding({tokens}, std::vector<std::int32_t>(tokens, 7)), column()};
  const VocabularyPart part{0, 50257, 50257};
  b.kernels().loss_max(parts, logits, part);
  b.kernels().loss_sums(parts, logits, targets.ids, part);
  if (pass == 0)
    return {[=] { logits.device().kernels().loss_max(parts, logits, part); }, sum_of_bytes({logits})};
  if (pass == 1)
    return {[=] { logits.device().kernels().loss_sums(parts, logits, targets.ids, part); },
            sum_of_bytes({logits})};
  return {[=] { logits.device().kernels().loss_backward(logits, parts, targets, part); },
          sum_of_bytes({logits, logits})};
}

TimedWork sum_squares(const Bench& b) {
  const Tensor x = b.normal({b.t, h});
  const Tensor digits = b.holding({exact_digits}, std::vector<double>(exact_digits));
  return {[=] { x.device().kernels().sum_squares(digits, x); }, sum_of_bytes({x})};
}

TimedWork sum_rows(const Bench& b) {
  const Tensor x = b.normal({b.t, h});
  const Tensor sums = b.normal({1, h}, Dtype::f32).view({h});
  return {[=] { x.device().kernels().sum_rows(sums, x); }, sum_of_bytes({x})};
}

std::vector<std::pair<std::string, Make>> jobs() {
  return {
      {"cast to f32", [](const Bench& b) { return cast(b, Dtype::f32); }},
      {"cast to bf16", [](const Bench& b) { return cast(b, Dtype::bf16); }},
      {"add", add},
      {"bias_dropout_add p=0", [](const Bench& b) { return bias_dropout_add(b, 0); }},
      {"bias_dropout_add p=0.1", [](const Bench& b) { return bias_dropout_add(b, 0.1F); }},
      {"layer norm", [](const Bench& b) { return norm(b, NormKind::layer); }},
      {"rms norm", [](const Bench& b) { return norm(b, NormKind::rms); }},
      {"layer norm backward", [](const Bench& b) { return norm_backward(b, NormKind::layer); }},
      {"rms norm backward", [](const Bench& b) { return norm_backward(b, NormKind::rms); }},
      {"sum_norm p=0", [](const Bench& b) { return sum_norm(b, 0); }},
      {"sum_norm p=0.1", [](const Bench& b) { return sum_norm(b, 0.1F); }},
      {"gelu", [](const Bench& b) { return activation(b, Activation::gelu); }},
      {"gelu backward", [](const Bench& b) { return activation_backward(b, Activation::gelu); }},
      {"gelu_erf", [](const Bench& b) { return activation(b, Activation::gelu_erf); }},
      {"swiglu", gated},
      {"swiglu backward", gated_backward},
      {"convolve", [](const Bench& b) { return convolve(b, false); }},
      {"convolve with a bias", [](const Bench& b) { return convolve(b, true); }},
      {"convolve backward", [](const Bench& b) { return convolve_backward(b, false); }},
      {"convolve backward with a bias", [](const Bench& b) { return convolve_backward(b, true); }},
      {"adam", adam},
      {"loss_max", [](const Bench& b) { return loss(b, 0); }},
      {"loss_sums", [](const Bench& b) { return loss(b, 1); }},
      {"loss_backward", [](const Bench& b) { return loss(b, 2); }},
      {"sum_squares", sum_squares},
      {"sum_rows", sum_rows},
  };
}

struct Devices {
  std::unique_ptr<Device> all = open_device("cpu", {});
  std::unique_ptr<Device> one = open_device("cpu", {.threads = 1});
};

void run(benchmark::State& state, const Devices& devices, const Yardstick& copy, Dtype dtype,
         const Make& make) {
  const Bench in_memory(*devices.all, dtype, t), in_cache(*devices.one, dtype, t / turns_in_cache),
      half_in_cache(*devices.one, dtype, t / turns_in_cache / 2);
  turns(state, copy, {make(in_memory), make(in_cache), make(half_in_cache), devices.all->threads()});
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  using namespace weft;
  const Devices devices;
  const Yardstick copy(*devices.all);
  for (const auto& [title, make] : jobs())
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      benchmark::RegisterBenchmark(
          (title + "/" + name(dtype)).c_str(),
          [&, dtype, job = make](benchmark::State& state) { run(state, devices, copy, dtype, job); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->Iterations(9);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
