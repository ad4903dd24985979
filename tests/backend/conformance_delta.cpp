// Layers that remember: filters over a few steps, the gated delta rule and state spaces.
#include <cmath>

#include "tests/backend/conformance_delta.h"

namespace weft::conformance {
namespace {

struct FilterCase {
  std::int64_t steps, groups, channels, taps;
};

/// More steps and channels than any walk takes at once, fewer steps than taps, a single channel.
TEST_P(Conformance, filters_a_few_steps) {
  for (const Dtype dtype : floats)
    for (const FilterCase& c : {FilterCase{70, 2, 40, 4}, FilterCase{3, 1, 7, 4}, FilterCase{9, 3, 1, 1},
                                FilterCase{5, 2, 272, 2}, FilterCase{140, 1, 3, 8}})
      for (const Lay lay : {Lay::contiguous, Lay::gaps, Lay::swapped})
        same_by_itself(
            [&](Desk& desk) {
              const Shape shape{c.steps, 2, c.groups, c.channels};
              const Tensor x = desk.normal(shape, dtype), dy = desk.normal(shape, dtype);
              const Tensor y = desk.blank(shape, dtype), dx = desk.blank(shape, dtype);
              desk.lay(Lay::contiguous);
              const Tensor weight = desk.normal({c.groups, c.channels, c.taps}, dtype, 0.5);
              const Tensor dweight = desk.normal({c.groups, c.channels, c.taps});
              desk.kernels().convolve(y, x, {weight});
              desk.result("y", y, close(dtype, c.taps, 4));
              desk.kernels().convolve_backward({dx, dweight}, dy, x, {weight});
              desk.result("dx", dx, close(dtype, c.taps, 4));
              desk.result("dweight", dweight, close(Dtype::f32, 2 * c.steps * c.taps, 8));
            },
            lay);
}

TEST_P(Conformance, filters_a_few_steps_and_adds_a_bias) {
  for (const Dtype dtype : floats)
    for (const FilterCase& c : {FilterCase{150, 2, 40, 4}, FilterCase{5, 1, 7, 6}})
      same_by_itself([&](Desk& desk) {
        const Shape shape{c.steps, 2, c.groups, c.channels};
        const Tensor x = desk.normal(shape, dtype), dy = desk.normal(shape, dtype);
        const Tensor y = desk.blank(shape, dtype), dx = desk.blank(shape, dtype);
        desk.lay(Lay::contiguous);
        const Filters filters{desk.normal({c.groups, c.channels, c.taps}, dtype, 0.5),
                              desk.normal({c.groups, c.channels}, dtype)};
        const Tensor dweight = desk.normal({c.groups, c.channels, c.taps});
        const Tensor dbias = desk.normal({c.groups, c.channels});
        desk.kernels().convolve(y, x, filters);
        desk.result("y", y, close(dtype, c.taps, 4));
        desk.kernels().convolve_backward({dx, dweight, dbias}, dy, x, filters);
        desk.result("dx", dx, close(dtype, c.taps, 4));
        desk.result("dweight", dweight, close(Dtype::f32, 2 * c.steps * c.taps, 8));
        desk.result("dbias", dbias, close(Dtype::f32, 2 * c.steps * c.taps, 8));
      });
}

struct DeltaCase {
  std::int64_t steps, groups, heads, d, d_value;
};

DeltaIn operands(Desk& desk, const DeltaCase& c, Dtype dtype) {
  DeltaIn in;
  // As long as keys are that were normed: longer ones would let memories grow.
  const double size = 0.8 / std::sqrt(double(c.d));
  in.q = desk.normal({c.steps, 2, c.groups, c.d}, dtype, size);
  in.k = desk.normal({c.steps, 2, c.groups, c.d}, dtype, size);
  in.v = desk.normal({c.steps, 2, c.groups, c.heads, c.d_value}, dtype);
  in.decay = desk.normal({c.steps, 2, c.groups, c.heads}, dtype, 2);
  in.rate = desk.normal({c.steps, 2, c.groups, c.heads}, dtype, 2);
  desk.lay(Lay::contiguous);
  in.speed = desk.normal({c.groups, c.heads}, Dtype::f32, 2);
  in.shift = desk.normal({c.groups, c.heads}, Dtype::f32, 1);
  in.scale = float(1 / std::sqrt(double(c.d)));
  return in;
}

// Either answer is rounded: next to a tie they are a step apart.
void remembers(Desk& desk, const DeltaIn& in) {
  const Dtype dtype = in.v.dtype();
  remember(desk, in, {dtype, dtype, {2 * rounding(dtype) + 2e-5, rounding(dtype) * 1e-2 + 2e-5}});
}

struct Laid {
  Dtype dtype;
  Lay lay;
};

/// Several chunks and a rest, less than a chunk, one step; heads that share a key and such that do not;
/// widths that are no whole registers, and memories that no block has alone. Each type lies in another way.
TEST_P(Conformance, remembers_by_the_delta_rule) {
  for (const DeltaCase& c :
       {DeltaCase{100, 2, 2, 16, 8}, DeltaCase{40, 1, 1, 32, 72}, DeltaCase{13, 1, 3, 24, 8},
        DeltaCase{1, 2, 1, 8, 8}, DeltaCase{70, 1, 2, 5, 19}})
    for (const auto& [dtype, lay] :
         {Laid{Dtype::f32, Lay::contiguous}, Laid{Dtype::bf16, Lay::gaps}, Laid{Dtype::f16, Lay::swapped}})
      same_by_itself([&, dtype = dtype](Desk& desk) { remembers(desk, operands(desk, c, dtype)); }, lay);
}

/// The same operands, and skips instead of rates.
DeltaIn state_space(Desk& desk, const DeltaCase& c, Dtype dtype) {
  DeltaIn in = operands(desk, c, dtype);
  in.rate = {};
  in.skip = desk.normal({c.groups, c.heads});
  return in;
}

TEST_P(Conformance, remembers_as_a_state_space) {
  for (const DeltaCase& c :
       {DeltaCase{100, 2, 2, 16, 8}, DeltaCase{40, 1, 1, 32, 72}, DeltaCase{13, 1, 3, 24, 8},
        DeltaCase{1, 2, 1, 8, 8}, DeltaCase{70, 1, 2, 5, 19}, DeltaCase{50, 1, 4, 128, 64}})
    for (const auto& [dtype, lay] :
         {Laid{Dtype::f32, Lay::contiguous}, Laid{Dtype::bf16, Lay::gaps}, Laid{Dtype::f16, Lay::swapped}})
      same_by_itself([&, dtype = dtype](Desk& desk) { remembers(desk, state_space(desk, c, dtype)); }, lay);
}

/// More heads in a group than one thread takes at once.
TEST_P(Conformance, remembers_as_a_state_space_with_many_heads) {
  for (const DeltaCase& c : {DeltaCase{60, 2, 11, 16, 8}, DeltaCase{20, 1, 17, 8, 24}})
    same_by_itself([&](Desk& desk) { remembers(desk, state_space(desk, c, Dtype::bf16)); });
}

TEST_P(Conformance, remembers_as_a_state_space_for_long) {
  same_by_itself([&](Desk& desk) { remembers(desk, state_space(desk, {530, 1, 2, 8, 8}, Dtype::f32)); });
}

void goes_on(Desk& desk, DeltaIn in) {
  const Dtype dtype = in.v.dtype();
  const Shape& v = in.v.shape();
  in.memory = desk.normal({v[1], v[2], v[3], in.q.dim(3), v[4]});
  const Tensor o = desk.blank(v, dtype);
  desk.kernels().delta_rule(o, in);
  desk.result("o", o, {2 * rounding(dtype) + 2e-5, rounding(dtype) * 1e-2 + 2e-5});
  desk.result("memory", in.memory, {2e-5, 2e-5});
}

/// From what is remembered already; one step of it, and several chunks.
TEST_P(Conformance, goes_on_from_a_memory) {
  for (const DeltaCase& c : {DeltaCase{1, 2, 2, 16, 8}, DeltaCase{100, 1, 11, 12, 40},
                             DeltaCase{3, 1, 1, 136, 24}, DeltaCase{2, 1, 2, 128, 64}})
    for (const auto& [dtype, lay] :
         {Laid{Dtype::f32, Lay::contiguous}, Laid{Dtype::bf16, Lay::gaps}, Laid{Dtype::f16, Lay::swapped}})
      for (const auto make : {operands, state_space})
        same_by_itself([&, dtype = dtype](Desk& desk) { goes_on(desk, make(desk, c, dtype)); }, lay);
}

/// As wide as published models have them, and wider.
TEST_P(Conformance, remembers_in_wide_heads) {
  for (const DeltaCase& c : {DeltaCase{50, 1, 1, 128, 128}, DeltaCase{35, 1, 1, 136, 40}})
    same_by_itself([&](Desk& desk) { remembers(desk, operands(desk, c, Dtype::bf16)); });
}

/// Longer than what a GPU goes back over at once.
TEST_P(Conformance, remembers_for_long) {
  same_by_itself([&](Desk& desk) { remembers(desk, operands(desk, {530, 1, 1, 8, 8}, Dtype::f32)); });
}

/// e^-100 a step: nothing is left, and nothing is infinite.
TEST_P(Conformance, forgets_at_once) {
  for (const bool corrects : {true, false})
    same_by_itself([&](Desk& desk) {
      DeltaIn in = (corrects ? operands : state_space)(desk, {40, 1, 2, 16, 16}, Dtype::f32);
      in.speed = desk.holding({1, 2}, Dtype::f32, {4, -20});
      in.shift = desk.holding({1, 2}, Dtype::f32, {40, -3});
      remembers(desk, in);
    });
}

}  // namespace
}  // namespace weft::conformance
