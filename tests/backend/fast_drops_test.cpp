// Which elements the fast loops drop: those whose word in the draw says so, wherever a row starts.
#include <gtest/gtest.h>

#include <vector>

#include "weft/backend/cpu/fast/loops.h"
#include "weft/base/half.h"
#include "weft/base/random.h"

namespace weft::fast {
namespace {

template <class T>
void expect_addressed(InstructionSet set, Type type, std::uint64_t first, std::int64_t n) {
  const Draw draw({.seed = 7, .purpose = Purpose::test, .layer = 2});
  const DropRow row{
      {draw.key()[0], draw.key()[1]}, {draw.upper()[0], draw.upper()[1]}, first, share(0.3), 2.0F};
  const std::vector<T> x(std::size_t(n), T(1.0F));
  std::vector<T> y(x.size());
  std::vector<T> added(x.size());
  loops(set).dropout.dropout({y.data(), type, false}, {x.data(), type}, row, n);
  loops(set).dropout.bias_dropout_add({added.data(), type, false}, {x.data(), type}, nullptr,
                                      {x.data(), type}, row, n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float kept = draw.word(first + i) < share(0.3) ? 0.0F : 2.0F;
    ASSERT_EQ(float(y[i]), kept) << name(set) << ", row at " << first << ", element " << i;
    ASSERT_EQ(float(added[i]), kept + 1.0F) << name(set) << ", row at " << first << ", element " << i;
  }
}

// Rows that start at a block of four words and between two, before and after the counter's lower half is
// full (element 2^34), and across it.
TEST(Drops, every_element_has_the_word_of_its_address) {
  constexpr std::uint64_t full = std::uint64_t{1} << 34;
  for (const InstructionSet set : all_here())
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{4}, std::uint64_t{1027}, full - 512,
                                      full - 200, full, 5 * full + 4096})
      for (const std::int64_t n : {1, 127, 128, 512, 1031}) {
        expect_addressed<float>(set, Type::f32, first, n);
        expect_addressed<bf16>(set, Type::bf16, first, n);
        expect_addressed<f16>(set, Type::f16, first, n);
      }
}

}  // namespace
}  // namespace weft::fast
