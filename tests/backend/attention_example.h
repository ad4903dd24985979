// Attention problems for tests: inputs, what was computed for them, and how far two answers are apart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/backend/cpu/device.h"
#include "weft/backend/cpu/fast/attention.h"
#include "weft/tensor/host.h"

namespace weft::testing {

struct Problem {
  std::int64_t sq = 64, sk = 64, b = 1, g = 1, r = 1, d = 64;
  Dtype dtype = Dtype::f32;
  AttentionArgs how = {};
  std::int64_t documents = 0;  // equal lengths, 0: no segments; the last tenth is padding
  std::int64_t led_by = 0;     // so much padding
  bool biased = false;
  bool strided = false;  // q, k and v are slices of one tensor, o is [b, s, ..] in memory
  float scaled = 1;      // times 1 / sqrt(d)
};

/// A problem's tensors on a device.
struct Example {
  Attended in;
  Tensor dout;
  AttentionArgs how;
};
struct Answer {
  AttentionOut out;
  AttentionGrads grads;
};

/// Normally distributed numbers that depend on the seed alone.
Tensor random_tensor(Device& device, const Shape& shape, Dtype dtype, std::uint64_t seed);
Example make(Device& device, const Problem& problem);
/// Memory for an answer, in the problem's types or in f32.
Answer room_for(const Example& example, Dtype dtype);

/// Forward and backward by our loops.
Answer compute(const fast::AttentionLoops& loops, const Example& example);
/// The same by plain loops in double, into f32.
Answer oracle(Device& device, const Example& example);

/// Greatest difference over the greatest number expected (at least 1).
double distance(const Tensor& got, const Tensor& expected);
/// The same bits?
bool same(const Tensor& a, const Tensor& b);
bool same(const Answer& a, const Answer& b);

}  // namespace weft::testing
