// Numbers that are not finite are found wherever they stand, and are not saved.
#include "weft/checkpoint/finite.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/checkpoint/cuts.h"
#include "tests/checkpoint/faulty.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/checkpoint/save.h"
#include "weft/checkpoint/step.h"
#include "weft/comm/solo.h"

using namespace weft;
using namespace weft::checkpoint;
using namespace weft::checkpoint::testing;
using support::TemporaryDirectory;
using weft::testing::PlainDevice;

namespace {

template <class T>
std::int64_t found(const std::vector<T>& values) {
  return first_not_finite(std::as_bytes(std::span(values)), dtype_of<T>);
}

template <class T>
class Finite : public ::testing::Test {};
using Types = ::testing::Types<float, double, bf16, f16>;
TYPED_TEST_SUITE(Finite, Types);

}  // namespace

TYPED_TEST(Finite, finds_each_such_number_at_any_place_and_no_other) {
  const auto of = [](double value) { return TypeParam(static_cast<float>(value)); };
  const double largest = std::is_same_v<TypeParam, f16> ? 65504.0 : 1e38;
  for (const std::size_t count : std::vector<std::size_t>{0, 1, 1023, 1024, 1025, 3000}) {
    const std::vector<TypeParam> good(count, of(largest));
    EXPECT_EQ(found(good), -1) << count;
    for (const double bad : {double(INFINITY), double(-INFINITY), double(NAN)})
      for (const std::size_t at : {std::size_t(0), count / 2, count - 1}) {
        if (count == 0) continue;
        std::vector<TypeParam> values = good;
        values[at] = of(bad);
        EXPECT_EQ(found(values), std::int64_t(at)) << count;
      }
  }
  EXPECT_EQ(found(std::vector<TypeParam>{of(0), of(-0.0), of(-largest), of(1e-30)}), -1);
}

TEST(Save, of_numbers_that_are_not_finite_is_refused_and_leaves_the_step_as_it_was) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  const auto save_with = [&](float last) {
    const Tensor w = from_host<float>(device, {3}, {1, 2, last});
    Beside beside("{}");
    beside.numbers = Numbers::finite;
    save(folder / "step_00000001", std::vector<Named>{whole("layers.0.w", w)}, beside, world, Swift());
  };
  save_with(3);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(refused([&] { save_with(bad); }),
              "layers.0.w holds numbers that are not finite, and such a model is not saved");
  EXPECT_EQ(verify(folder / "step_00000001").bytes, 12);
}
