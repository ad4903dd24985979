// Products at GPT's shapes through ops::matmul, in turn with a bare oneDNN call on the same operands as they
// lie, in one process. Prints a table: rates in GFLOP/s (median), ratios of medians.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dnnl.hpp>
#include <string>

#include "weft/backend/cpu/device.h"
#include "weft/backend/cpu/limits.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"

namespace weft {
namespace {

using dnnl::memory;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// out[m, n] (+)= a[m, k] b[k, n] as a GPT layer needs it.
struct Form {
  const char* name;
  std::int64_t m, n, k;
  bool a_turned, b_turned, adds;
};

memory::desc desc(const Tensor& t, bool turned) {
  const auto type = t.dtype() == Dtype::f32 ? memory::data_type::f32 : memory::data_type::bf16;
  const auto row = t.stride(0);
  const auto rows = t.dim(turned ? 1 : 0);
  return {{rows, t.dim(turned ? 0 : 1)}, type, turned ? memory::dims{1, row} : memory::dims{row, 1}};
}

/// What somebody would write who has only oneDNN: operands where they lie, the primitive made once.
class Bare {
 public:
  Bare(const Form& f, const Tensor& out, const Tensor& a, const Tensor& b) {
    dnnl::primitive_attr how;
    if (f.adds) {
      dnnl::post_ops then;
      then.append_sum(1.0F);
      how.set_post_ops(then);
    }
    const memory::desc da = desc(a, f.a_turned), db = desc(b, f.b_turned), dout = desc(out, false);
    product_ = dnnl::matmul({{da, db, dout}, how, engine_});
    arguments_ = {{DNNL_ARG_SRC, memory(da, engine_, a.address())},
                  {DNNL_ARG_WEIGHTS, memory(db, engine_, b.address())},
                  {DNNL_ARG_DST, memory(dout, engine_, out.address())}};
  }
  void run() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul product_;
  std::unordered_map<int, memory> arguments_;
};

struct Spread {
  double median = 0, least = 0, most = 0;
  explicit Spread(std::vector<double> seconds) {
    std::ranges::sort(seconds);
    median = seconds[seconds.size() / 2];
    least = seconds.front();
    most = seconds.back();
  }
};

void measure(CpuDevice& device, const Form& f, Dtype dtype, double limit) {
  const Tensor a = ops::zeros(device, f.a_turned ? Shape{f.k, f.m} : Shape{f.m, f.k}, dtype);
  const Tensor b = ops::zeros(device, f.b_turned ? Shape{f.n, f.k} : Shape{f.k, f.n}, dtype);
  const Tensor out = ops::zeros(device, {f.m, f.n}, f.adds ? Dtype::f32 : dtype);
  const Read read = f.b_turned ? Read::transposed : Read::as_is;
  const Tensor other = ops::zeros(device, b.shape(), dtype);
  const MatmulArgs plain{.a = f.a_turned ? Read::transposed : Read::as_is, .b = read, .accumulate = f.adds};
  Bare bare(f, out, a, b);
  const double flops = 2.0 * double(f.m) * double(f.n) * double(f.k);
  const int runs = std::clamp(int(4e10 / flops), 9, 41);
  const auto seconds = [](const auto& work) {
    const double start = now();
    work();
    return now() - start;
  };
  std::vector<double> ours, theirs, ratios;
  for (int i = 0; i <= runs; ++i) {
    // A product with another operand goes before each of the two: neither finds its own in a cache that the
    // other has just read.
    ops::matmul_into(out, a, other, plain);
    const double o = seconds([&] { ops::matmul_into(out, a, b, plain); });
    ops::matmul_into(out, a, other, plain);
    const double t = seconds([&] { bare.run(); });
    if (i == 0) continue;
    ours.push_back(o);
    theirs.push_back(t);
    ratios.push_back(t / o);
  }
  const Spread o(ours), t(theirs), ratio(ratios);
  std::printf("| %s | %s | %ld | %ld | %ld | %.0f (%.0f-%.0f) | %.0f (%.0f-%.0f) | %.2f | %.0f %% |\n",
              name(dtype), f.name, long(f.m), long(f.n), long(f.k), flops / o.median / 1e9,
              flops / o.most / 1e9, flops / o.least / 1e9, flops / t.median / 1e9, flops / t.most / 1e9,
              flops / t.least / 1e9, ratio.median, 100 * flops / o.median / limit);
  std::fflush(stdout);
}

void measure_all(Dtype dtype, std::int64_t from, std::int64_t to) {
  CpuDevice device;
  const Limits limits = measure_limits(device, dtype);
  std::printf("\n%s: limit %.0f GFLOP/s (square product), %d threads\n\n", name(dtype),
              limits.product_flops / 1e9, device.threads());
  std::printf("| type | form | m | n | k | ops::matmul | bare oneDNN | ratio | of the limit |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  for (const std::int64_t t : {128, 512, 2048, 8192}) {
    if (t < from || t > to) continue;
    for (const auto& [out, in] :
         {std::pair<std::int64_t, std::int64_t>{768, 768}, {3072, 768}, {768, 3072}, {4096, 4096}}) {
      if (t * out * in > std::int64_t(2048) * 4096 * 4096) continue;
      measure(device, {"forward", t, out, in, false, true, false}, dtype, limits.product_flops);
      measure(device, {"input grad", t, in, out, false, false, false}, dtype, limits.product_flops);
      measure(device, {"weight grad", out, in, t, true, false, true}, dtype, limits.product_flops);
    }
  }
}

}  // namespace
}  // namespace weft

int main(int count, char** arguments) {
  const std::string type = count > 1 ? arguments[1] : "f32";
  const auto from = count > 2 ? std::stol(arguments[2]) : 128;
  const auto to = count > 3 ? std::stol(arguments[3]) : 8192;
  weft::measure_all(type == "bf16" ? weft::Dtype::bf16 : weft::Dtype::f32, from, to);
}
