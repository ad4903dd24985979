// Small integers with a scale a block: every bit of what is packed, and what comes back.
#include <cmath>
#include <limits>

#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

TEST_P(Conformance, packs_blocks_and_unpacks_them) {
  for (const std::int64_t n : {0, 1, 16, 31, 64, 5003, 40000})
    for (const BlockCode& how : {BlockCode{.bits = 8, .block = 2048}, BlockCode{.bits = 8, .block = 6},
                                 BlockCode{.bits = 4, .block = 256}, BlockCode{.bits = 4, .block = 34}})
      for (const Dtype dtype : floats)
        same([&](Desk& desk) {
          const Tensor x = desk.normal({n}, dtype), packed = desk.blank({packed_bytes(n, how)}, Dtype::u8);
          const Tensor out = desk.blank({n}, dtype), sum = desk.normal({n}, dtype);
          BlockCode added = how;
          added.accumulate = true;
          desk.kernels().pack_blocks(packed, x, how);
          desk.kernels().unpack_blocks(out, packed, how);
          desk.kernels().unpack_blocks(sum, packed, added);
          desk.result("packed", packed, exactly);
          desk.result("out", out, exactly);
          desk.result("sum", sum, exactly);
        });
}

TEST_P(Conformance, packs_what_is_not_finite_and_what_is_next_to_nothing) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const int bits : {8, 4})
    same([&](Desk& desk) {
      const BlockCode how{.bits = bits, .block = 2};
      const std::vector<double> values{0, -0.0, 1, infinite, -infinite, 0, std::nan(""), 1, 1e-39, -2e-39, 3};
      const std::int64_t n = std::ssize(values);
      const Tensor x = desk.holding({n}, Dtype::f32, values);
      const Tensor packed = desk.blank({packed_bytes(n, how)}, Dtype::u8), out = desk.blank({n});
      desk.kernels().pack_blocks(packed, x, how);
      desk.kernels().unpack_blocks(out, packed, how);
      desk.result("packed", packed, exactly);
      desk.result("out", out, exactly);
    });
}

}  // namespace
}  // namespace weft::conformance
