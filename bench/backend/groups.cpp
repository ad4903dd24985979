// Products of experts through ops::grouped_matmul, in turn with one product of the same rows, in one process.
// Prints a table: rates in GFLOP/s (median), and the ratio of the medians.
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

  void measure(Form form, bool zipf) const {
    const std::int64_t rows = experts * each;
    const auto offsets = offsets_of(experts, each, zipf);
    const Groups groups{offsets};
    const Tensor x = ops::zeros(device, {rows, hidden}, dtype), y = ops::zeros(device, {rows, inner}, dtype);
    const bool sums = form == Form::weight_grad;
    const Tensor w = ops::zeros(device, {experts, inner, hidden}, sums ? Dtype::f32 : dtype);
    const auto in_groups = [&] {
      if (form == Form::forward)
        ops::grouped_matmul_into(y, x, w, groups, {.b = Read::transposed});
      else if (form == Form::input_grad)
        ops::grouped_matmul_into(x, y, w, groups);
      else
        ops::grouped_matmul_into(w, y, x, groups, {.a = Read::transposed, .accumulate = true});
    };
    const auto at_once = [&] {
      const Tensor one = w.at(0, 0);
      if (form == Form::forward)
        ops::matmul_into(y, x, one, {.b = Read::transposed});
      else if (form == Form::input_grad)
        ops::matmul_into(x, y, one);
      else
        ops::matmul_into(one, y, x, {.a = Read::transposed, .accumulate = true});
    };
    const double flops = 2.0 * double(rows) * double(hidden) * double(inner);
    const int runs = std::clamp(int(3e11 / flops), 3, 11);
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
                long(each), zipf ? "Zipf" : "even", names[std::size_t(form)], flops / median(grouped) / 1e9,
                flops / median(single) / 1e9, 100 * median(single) / median(grouped));
    std::fflush(stdout);
  }
};

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
  const std::string type = count > 1 ? arguments[1] : "f32";
  weft::measure_all(type == "bf16" ? weft::Dtype::bf16 : weft::Dtype::f32,
                    count > 2 ? std::atol(arguments[2]) : 64);
}
