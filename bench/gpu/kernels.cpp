// kernels DEVICE [small]: how long a device takes for what a training is made of, a JSON object a line:
// products, attention, norms and Adam, with the operations and the bytes that each needs at least. On any
// device; small, for looking whether it runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/backend/gpus.h"
#include "weft/backend/open.h"
#include "weft/tensor/kernels.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

struct Need {
  double flops, bytes;
};

/// Numbers that nobody wrote: of equal ones a GPU takes less power, and so less time, than of a training's.
Tensor filled(Device& device, const Shape& shape, Dtype dtype) {
  const Tensor exact = empty(device, shape), out = empty(device, shape, dtype);
  const std::int64_t columns = shape[-1];
  device.kernels().random_normal(exact.view({exact.elements() / columns, columns}), 0, 1,
                                 {.at = {.seed = 1, .purpose = Purpose::test}, .columns = columns});
  device.kernels().copy(out, exact);
  return out;
}

/// The median of eleven runs, each of as many calls as take some milliseconds: launches are asked for ahead.
double seconds_of(Device& device, const std::function<void()>& call) {
  const auto take = [&](int calls) {
    device.synchronize();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    device.synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count() / calls;
  };
  take(1);
  const double once = take(1);
  const int calls = once > 5e-3 ? 1 : int(5e-3 / once) + 1;
  std::vector<double> all(11);
  for (double& one : all) one = take(calls);
  std::nth_element(all.begin(), all.begin() + 5, all.end());
  return all[5];
}

void tell(Device& device, const std::string& what, Need need, const std::function<void()>& call) {
  const double seconds = seconds_of(device, call);
  std::printf("{\"what\": \"%s\", \"seconds\": %.9f, \"flops\": %.0f, \"bytes\": %.0f}\n", what.c_str(),
              seconds, need.flops, need.bytes);
  std::fflush(stdout);
}

void products(Device& device, const std::string& way, std::int64_t n) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f32}) {
    const Tensor a = filled(device, {n, n}, dtype), b = filled(device, {n, n}, dtype);
    const Tensor out = filled(device, {n, n}, dtype);
    const double size = double(n);
    tell(device, std::string("product") + way + " " + name(dtype) + " " + std::to_string(n),
         {2 * size * size * size, 3 * double(size_of(dtype)) * size * size},
         [&] { device.kernels().matmul(out, a, b, {}); });
  }
}

/// Eight experts that have as many rows each.
void grouped(Device& device, const std::string& way, std::int64_t rows, std::int64_t n) {
  constexpr std::int64_t groups = 8;
  std::vector<std::int64_t> offsets;
  for (std::int64_t g = 0; g <= groups; ++g) offsets.push_back(g * rows / groups);
  const Tensor x = filled(device, {rows, n}, Dtype::bf16), w = filled(device, {groups, n, n}, Dtype::bf16);
  const Tensor out = filled(device, {rows, n}, Dtype::bf16);
  const double r = double(rows), size = double(n);
  tell(device, "product of 8 groups" + way + " bf16 " + std::to_string(rows) + " x " + std::to_string(n),
       {2 * r * size * size, 4 * r * size + 16 * size * size},
       [&] { device.kernels().grouped_matmul(out, x, w, {offsets}, {.b = Read::transposed}); });
}

struct Heads {
  std::int64_t s, d, batch, count;
};
/// Causal, of which the half that is seen counts: two products forward, five backward.
void attention(Device& device, const Heads& heads, const std::string& way) {
  const auto [s, d, batch, count] = heads;
  const auto each = [&] { return filled(device, {s, batch, count, 1, d}, Dtype::bf16); };
  const auto keys = [&] { return filled(device, {s, batch, count, d}, Dtype::bf16); };
  const Attended in{each(), keys(), keys()};
  const AttentionOut out{each(), empty(device, {batch, count, s})};
  const AttentionGrads grads{each(), keys(), keys()};
  const Tensor dout = each();
  const AttentionArgs how{.scale = 0.125F, .mask = Mask::causal};
  const double one = double(s) * double(s) / 2 * double(d) * double(batch * count) * 2;
  const double row = 2 * double(s * batch * count * d), lse = 4 * double(s * batch * count);
  const std::string name = way + " bf16 s" + std::to_string(s) + " d" + std::to_string(d);
  tell(device, "attention" + name, {2 * one, 4 * row + lse},
       [&] { device.kernels().attention(out, in, how); });
  tell(device, "attention backward" + name, {5 * one, 8 * row + lse},
       [&] { device.kernels().attention_backward(grads, dout, out, in, how); });
}

void norms(Device& device, std::int64_t rows, std::int64_t h) {
  const Tensor x = filled(device, {rows, h}, Dtype::bf16), y = filled(device, {rows, h}, Dtype::bf16);
  const NormWeights weights{filled(device, {h}, Dtype::bf16), filled(device, {h}, Dtype::bf16)};
  const NormStats stats{empty(device, {rows}), empty(device, {rows})};
  tell(device, "layer norm bf16 " + std::to_string(rows) + " x " + std::to_string(h),
       {0, 4 * double(rows * h) + 8 * double(rows) + 4 * double(h)},
       [&] { device.kernels().norm(y, stats, x, weights, {}); });
}

/// Masters and both moments are read and written, the gradient read, the copy in bf16 written.
void adam(Device& device, std::int64_t n) {
  const auto each = [&] { return filled(device, {n}, Dtype::f32); };
  const AdamState state{each(), each(), each(), filled(device, {n}, Dtype::bf16)};
  device.kernels().multiply(state.v, state.m, state.m);
  const Tensor grad = each();
  tell(device, "Adam of " + std::to_string(n), {0, (3 * 8 + 4 + 2) * double(n)}, [&] {
    device.kernels().adam(state, grad,
                          {.rate = 1e-4F, .decay = 0.01F, .correction1 = 0.5F, .correction2 = 0.5F});
  });
}

void run(std::string_view name, bool small) {
  const auto device = open_device(name);
  const std::int64_t less = small ? 32 : 1;
  const auto exact = open_device(name, {.exact = true});
  for (const std::int64_t n : {4096, 8192}) {
    products(*device, "", n / less);
    products(*exact, " of fixed order", n / less);
  }
  grouped(*device, "", 16384 / less, 2048 / less);
  const auto attentions = [&](Device& by, const std::string& way, std::int64_t widest) {
    for (std::int64_t d = 64; d <= widest; d *= 2)
      for (const std::int64_t s : {1024, 4096, 16384})
        attention(by, {s / less, d, small ? 1 : 16384 / s, small ? 2 : 2048 / d}, way);
  };
  attentions(*device, "", 256);
  if (names_gpu(name) && gpus_here().all.front().warpgroups) {
    const std::string way = " by warpgroups";
    const auto by_them = open_device(name, {.warpgroups = true});
    grouped(*by_them, way, 16384 / less, 2048 / less);
    attentions(*by_them, way, 128);
    products(*open_device(name, {.exact = true, .warpgroups = true}), " of fixed order" + way, 4096 / less);
  }
  norms(*device, 16384 / less, small ? 64 : 2048);
  adam(*device, (std::int64_t(1) << 28) / less / less);
}

}  // namespace
}  // namespace weft

int main(int count, char** words) {
  const std::string_view device = count > 1 ? words[1] : "", more = count > 2 ? words[2] : "";
  if (device.empty() || count > 3 || (!more.empty() && more != "small")) {
    std::fputs("kernels DEVICE [small]\n", stderr);
    return 2;
  }
  try {
    weft::run(device, !more.empty());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernels: %s\n", e.what());
    return 1;
  }
  return 0;
}
