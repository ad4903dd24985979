// Choosing and moving rows.
#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

TEST_P(Conformance, chooses_the_greatest_with_ties_to_the_lower_index) {
  for (const std::int64_t e : {1, 8, 60, 129})
    for (const std::int64_t k : {1, 2, 8})
      same_however_it_lies([&](Desk& desk) {
        if (k > e) return desk.result("nothing", desk.blank({1}), exactly);
        const Tensor random = desk.normal({33, e});
        const Tensor tied = desk.integers({33, e}, Dtype::f32, 0, 5);
        desk.lay(Lay::contiguous);
        const Tensor values = desk.blank({33, k});
        const Tensor indices = desk.blank({33, k}, Dtype::i32);
        for (const Tensor& x : {random, tied}) {
          desk.kernels().top_k(values, indices, x);
          desk.result("values", values, exactly);
          desk.result("indices", indices, exactly);
        }
      });
}

TEST_P(Conformance, moves_rows) {
  for (const Dtype dtype : floats)
    for (const Dtype to : {dtype, Dtype::f32})
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal({30, 41}, dtype);
        const Tensor out = desk.blank({50, 41}, to);
        const Tensor sum = desk.normal({10, 41}, to);
        desk.lay(Lay::contiguous);
        desk.kernels().gather_rows(out, x, desk.integers({50}, Dtype::i32, -2, 30));
        desk.result("gathered", out, exactly);
        const Tensor index = desk.integers({30}, Dtype::i32, -1, 10);
        desk.kernels().scatter_add_rows(sum, x, index, {});
        desk.kernels().scatter_add_rows(sum, x, index, desk.normal({30}));
        // Each of several additions rounds to the type.
        desk.result("added", sum, {32 * rounding(to), 64 * rounding(to)});
      });
}

TEST_P(Conformance, refuses_indices_out_of_range) {
  const auto device = GetParam().open(1);
  Desk desk(*device, Lay::contiguous);
  const Tensor x = desk.normal({3, 4});
  const Tensor index = desk.holding({3}, Dtype::i32, {0, 3, 1});
  EXPECT_THROW(desk.kernels().gather_rows(desk.blank({3, 4}), x, index), Error);
  EXPECT_THROW(desk.kernels().scatter_add_rows(desk.normal({3, 4}), x, index, {}), Error);
}

}  // namespace
}  // namespace weft::conformance
