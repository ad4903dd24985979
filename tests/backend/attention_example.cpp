// Inputs come from addressed random numbers, so every run and every machine tests the same ones.
#include "tests/backend/attention_example.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/random.h"
#include "weft/tensor/kernels.h"

namespace weft::testing {

namespace {

template <class T>
Tensor rounded(Device& device, const Shape& shape, const std::vector<float>& values) {
  std::vector<T> narrow;
  for (const float x : values) narrow.push_back(T(x));
  return from_host<T>(device, shape, narrow);
}

/// [count] segments of equal documents; the last tenth is padding, and the first ones where asked.
Tensor segments(Device& device, const Problem& p, std::int64_t count) {
  std::vector<std::int32_t> all;
  for (std::int64_t row = 0; row < p.b; ++row)
    for (std::int64_t i = 0; i < count; ++i)
      all.push_back(10 * i >= 9 * count || i < p.led_by ? -1 : std::int32_t(i * p.documents / count + row));
  return from_host<std::int32_t>(device, {p.b, count}, all);
}

Tensor laid_by_rows(Device& device, const Shape& s, Dtype dtype) {
  return empty(device, {s[1], s[0], s[2], s[3], s[4]}, dtype).permute({1, 0, 2, 3, 4});
}

}  // namespace

Tensor random_tensor(Device& device, const Shape& shape, Dtype dtype, std::uint64_t seed) {
  std::vector<float> values(std::size_t(shape.elements()));
  fill_normal(Draw({.seed = seed, .purpose = Purpose::test}), 0, values);
  if (dtype == Dtype::bf16) return rounded<bf16>(device, shape, values);
  if (dtype == Dtype::f16) return rounded<f16>(device, shape, values);
  return rounded<float>(device, shape, values);
}

Example make(Device& device, const Problem& p) {
  Example e;
  e.how = p.how;
  e.how.scale = p.scaled / std::sqrt(float(p.d));
  const Shape q = {p.sq, p.b, p.g, p.r, p.d}, k = {p.sk, p.b, p.g, p.d};
  if (p.strided) {
    const Tensor all = random_tensor(device, {std::max(p.sq, p.sk), p.b, p.g, p.r + 2, p.d}, p.dtype, 1);
    e.in.q = all.slice(0, 0, p.sq).slice(3, 0, p.r);
    e.in.k = all.slice(0, 0, p.sk).at(3, p.r);
    e.in.v = all.slice(0, 0, p.sk).at(3, p.r + 1);
  } else {
    e.in = {random_tensor(device, q, p.dtype, 1), random_tensor(device, k, p.dtype, 2),
            random_tensor(device, k, p.dtype, 3)};
  }
  e.dout = random_tensor(device, q, p.dtype, 4);
  if (p.documents > 0) {
    e.how.query_segments = segments(device, p, p.sq);
    e.how.key_segments = segments(device, p, p.sk);
  }
  if (p.biased) e.how.bias = random_tensor(device, {p.g * p.r, p.sq + p.sk + 5}, Dtype::f32, 5);
  e.how.bias0 = p.sk + 2;
  std::vector<std::int64_t> samples;
  for (std::int64_t row = 0; row < p.b; ++row) samples.push_back(100 + 7 * row);
  if (p.how.dropout > 0) e.how.samples = from_host<std::int64_t>(device, {p.b}, samples);
  return e;
}

Answer room_for(const Example& e, Dtype dtype) {
  Device& device = e.in.q.device();
  const Shape& q = e.in.q.shape();
  Answer a;
  a.out = {laid_by_rows(device, q, dtype), empty(device, {q[1], q[2] * q[3], q[0]})};
  a.grads = {.dq = laid_by_rows(device, q, dtype),
             .dk = empty(device, e.in.k.shape(), dtype),
             .dv = empty(device, e.in.v.shape(), dtype)};
  if (!e.how.bias) return a;
  a.grads.dbias = empty(device, e.how.bias.shape());
  std::fill_n(a.grads.dbias.data<float>(), a.grads.dbias.elements(), 0.5F);
  return a;
}

Answer compute(const fast::AttentionLoops& loops, const Example& e) {
  const Answer a = room_for(e, e.in.q.dtype());
  fast::attention(loops, a.out, e.in, e.how);
  fast::attention_backward(loops, a.grads, e.dout, a.out, e.in, e.how);
  return a;
}

Answer oracle(Device& device, const Example& e) {
  const Answer a = room_for(e, Dtype::f32);
  device.kernels().attention(a.out, e.in, e.how);
  device.kernels().attention_backward(a.grads, e.dout, a.out, e.in, e.how);
  return a;
}

double distance(const Tensor& got, const Tensor& expected) {
  const std::vector<double> a = numbers(got), b = numbers(expected);
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  // What is zero in exact arithmetic is noise of the terms that cancel: those are near 1.
  double apart = 0, greatest = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i])) greatest = std::max(greatest, std::abs(b[i]));
    if (a[i] == b[i]) continue;  // also -inf
    const double here = std::abs(a[i] - b[i]);
    apart = here <= apart ? apart : here;  // NaN wins
  }
  return apart / greatest;
}

bool same(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  return x == y;
}

bool same(const Answer& a, const Answer& b) {
  const bool biases = !a.grads.dbias || same(a.grads.dbias, b.grads.dbias);
  return same(a.out.o, b.out.o) && same(a.out.lse, b.out.lse) && same(a.grads.dq, b.grads.dq) &&
         same(a.grads.dk, b.grads.dk) && same(a.grads.dv, b.grads.dv) && biases;
}

}  // namespace weft::testing
