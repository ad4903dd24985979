// bench_groups [f32|bf16 [EXPERTS]]: products of experts through ops::grouped_matmul, in turn with one
// product of the same rows, in one process. Prints a table: rates in GFLOP/s (median), and the ratio of the
// medians. bench_groups floor [f32|bf16]: what few rows can have. The same groups with weights that are all
// one expert's, which stay in the last cache, and with weights of their own, which come from memory; in turn
// with a walk over as many bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "weft/backend/cpu/device.h"
#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"

namespace weft {
namespace {

constexpr std::int64_t hidden = 768, inner = 3072;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Where each expert's rows begin: as many each, or as Zipf's law has them, of the same number in all.
std::vector<std::int64_t> offsets_of(std::int64_t experts, std::int64_t each, bool zipf) {
  std::vector<std::int64_t> out{0};
  double all = 0, sum = 0;
  for (std::int64_t e = 1; e <= experts; ++e) all += zipf ? 1 / double(e) : 1;
  for (std::int64_t e = 1; e <= experts; ++e) {
    sum += zipf ? 1 / double(e) : 1;
    out.push_back(std::int64_t(double(experts * each) * sum / all + 0.5));
  }
  return out;
}

double median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

/// What is multiplied: x [rows, in] W^T, dy W, or dy^T x into the weights' gradients.
enum class Form : std::uint8_t { forward, input_grad, weight_grad };
constexpr const char* names[] = {"forward", "input grad", "weight grad"};

struct GroupedProducts {
  CpuDevice& device;
  Dtype dtype;
  std::int64_t experts, each;

  std::int64_t rows() const { return experts * each; }
  double flops() const { return 2.0 * double(rows()) * double(hidden) * double(inner); }
  Tensor weights(Form form, std::int64_t of) const {
    return ops::zeros(device, {of, inner, hidden}, form == Form::weight_grad ? Dtype::f32 : dtype);
  }
  /// x [rows, hidden], y [rows, inner]
  static void multiply(Form form, const Tensor& x, const Tensor& y, const Tensor& w, const Groups& groups) {
    if (form == Form::forward)
      ops::grouped_matmul_into(y, x, w, groups, {.b = Read::transposed});
    else if (form == Form::input_grad)
      ops::grouped_matmul_into(x, y, w, groups);
    else
      ops::grouped_matmul_into(w, y, x, groups, {.a = Read::transposed, .accumulate = true});
  }

  void measure(Form form, bool zipf) const {
    const auto offsets = offsets_of(experts, each, zipf);
    const Groups groups{offsets};
    const Tensor x = ops::zeros(device, {rows(), hidden}, dtype),
                 y = ops::zeros(device, {rows(), inner}, dtype);
    const Tensor w = weights(form, experts);
    const auto in_groups = [&] { multiply(form, x, y, w, groups); };
    const auto at_once = [&] {
      const Tensor one = w.at(0, 0);
      if (form == Form::forward)
        ops::matmul_into(y, x, one, {.b = Read::transposed});
      else if (form == Form::input_grad)
        ops::matmul_into(x, y, one);
      else
        ops::matmul_into(one, y, x, {.a = Read::transposed, .accumulate = true});
    };
    const int runs = std::clamp(int(3e11 / flops()), 3, 11);
    std::vector<double> grouped, single;
    for (int i = 0; i <= runs; ++i) {
      const double start = now();
      in_groups();
      const double between = now();
      at_once();
      if (i == 0) continue;
      grouped.push_back(between - start);
      single.push_back(now() - between);
    }
    std::printf("| %s | %ld | %ld | %s | %s | %.1f | %.1f | %.0f %% |\n", name(dtype), long(experts),
                long(each), zipf ? "Zipf" : "even", names[std::size_t(form)], flops() / median(grouped) / 1e9,
                flops() / median(single) / 1e9, 100 * median(single) / median(grouped));
    std::fflush(stdout);
  }

  /// Milliseconds a group, of `each` rows.
  void measure_floor(Form form) const {
    const Tensor x = ops::zeros(device, {rows(), hidden}, dtype),
                 y = ops::zeros(device, {rows(), inner}, dtype);
    const Tensor own = weights(form, experts), same = own.slice(0, 0, 1);
    const auto offsets = offsets_of(experts, each, false);
    const std::vector<std::int64_t> first{0, each};
    const auto one_for_all = [&] {
      for (std::int64_t g = 0; g < experts; ++g)
        multiply(form, x.slice(0, g * each, each), y.slice(0, g * each, each), same, Groups{first});
    };
    // Sums are read and written, weights read: as a sum over all of them reads.
    const Tensor total = ops::zeros(device, {hidden});
    const auto walk = [&] {
      if (form == Form::weight_grad)
        ops::scale_in_place(own, 1.5F);
      else
        ops::sum_rows_into(total, own.view({experts * inner, hidden}));
    };
    std::vector<double> cached, from_memory, walked;
    for (int i = 0; i <= 7; ++i) {
      const double start = now();
      one_for_all();
      const double second = now();
      multiply(form, x, y, own, Groups{offsets});
      const double third = now();
      walk();
      if (i == 0) continue;
      cached.push_back(second - start);
      from_memory.push_back(third - second);
      walked.push_back(now() - third);
    }
    const auto ms = [&](const std::vector<double>& seconds) {
      return 1e3 * median(seconds) / double(experts);
    };
    const double bytes = double(inner * hidden) * (form == Form::weight_grad ? 8.0 : double(size_of(dtype)));
    std::printf("| %s | %s | %ld | %.0f | %.2f | %.2f | %.2f | %.0f %% | %.0f %% |\n", name(dtype),
                names[std::size_t(form)], long(each), flops() / double(experts) / bytes, ms(cached),
                ms(walked), ms(from_memory), 100 * ms(cached) / ms(from_memory),
                100 * ms(cached) / (ms(cached) + ms(walked)));
    std::fflush(stdout);
  }
};

void measure_floors(Dtype dtype) {
  CpuDevice device;
  std::printf("%d threads, 32 experts of [%ld, %ld]; ms a group\n\n", device.threads(), long(inner),
              long(hidden));
  std::printf(
      "| type | form | rows each | FLOP a byte of weights | weights in cache | a walk over them | weights "
      "from "
      "memory | share had | share if neither hid the other |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const std::int64_t each : {64, 128, 256})
    for (const Form form : {Form::forward, Form::input_grad, Form::weight_grad})
      GroupedProducts{device, dtype, 32, each}.measure_floor(form);
}

void measure_all(Dtype dtype, std::int64_t most_experts) {
  CpuDevice device;
  std::printf("%d threads, [%ld, %ld] each\n\n", device.threads(), long(inner), long(hidden));
  std::printf("| type | experts | rows each | loads | form | in groups | at once | ratio |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const std::int64_t experts : {8, 16, 32, 64})
    for (const std::int64_t each : {64, 128, 256, 512}) {
      if (experts > most_experts || experts * each > 32768) continue;
      for (const Form form : {Form::forward, Form::input_grad, Form::weight_grad})
        for (const bool zipf : {false, true})
          GroupedProducts{device, dtype, experts, each}.measure(form, zipf);
    }
}

}  // namespace
}  // namespace weft

int main(int count, char** arguments) {
  const bool floor = count > 1 && std::string(arguments[1]) == "floor";
  if (floor) ++arguments, --count;
  const std::string type = count > 1 ? arguments[1] : "f32";
  if (floor) {
    weft::measure_floors(type == "bf16" ? weft::Dtype::bf16 : weft::Dtype::f32);
    return 0;
  }
  weft::measure_all(type == "bf16" ? weft::Dtype::bf16 : weft::Dtype::f32,
                    count > 2 ? std::atol(arguments[2]) : 64);
}
