// Which instruction sets there are, and that each has loops of its own which agree to the bit.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

#include "weft/backend/cpu/fast/attention.h"
#include "weft/backend/cpu/fast/loops.h"
#include "weft/base/error.h"
#include "weft/base/half.h"

namespace weft::fast {
namespace {

TEST(InstructionSets, generic_runs_everywhere_and_comes_first) {
  EXPECT_TRUE(runs_here(InstructionSet::generic));
  EXPECT_EQ(all_here().front(), InstructionSet::generic);
  EXPECT_EQ(all_here().back(), best_here());
}

TEST(InstructionSets, each_has_a_name_and_loops_of_its_own) {
  EXPECT_STREQ(name(InstructionSet::avx512_bf16), "avx512_bf16");
  EXPECT_STREQ(name(InstructionSet::avx512_amx), "avx512_amx");
  const auto copy = [](InstructionSet set) { return loops(set).elementwise.copy; };
  EXPECT_EQ(copy(InstructionSet::generic) != copy(InstructionSet::avx2), is_built(InstructionSet::avx2));
  EXPECT_EQ(copy(InstructionSet::avx2) != copy(InstructionSet::avx512), is_built(InstructionSet::avx512));
}

TEST(InstructionSets, that_multiply_bf16_take_attention_of_other_types_from_avx512) {
  const AttentionLoops& plain = attention_loops(InstructionSet::avx512);
  EXPECT_EQ(plain.forward_pairs, nullptr);
  for (const InstructionSet set : {InstructionSet::avx512_bf16, InstructionSet::avx512_amx}) {
    const AttentionLoops& here = attention_loops(set);
    EXPECT_EQ(here.forward_pairs != nullptr, is_built(InstructionSet::avx512_bf16)) << name(set);
    EXPECT_EQ(here.backward_pairs != nullptr, is_built(InstructionSet::avx512_bf16)) << name(set);
    EXPECT_TRUE(here.forward == plain.forward && here.backward == plain.backward) << name(set);
  }
}

TEST(InstructionSets, what_this_processor_runs_is_built) {
  for (const InstructionSet set : instruction_sets)
    EXPECT_EQ(runs_here(set), processor_runs(set)) << name(set);
}

TEST(InstructionSets, a_program_for_another_kind_refuses_this_one) {
  using enum InstructionSet;
  EXPECT_EQ(best_of({generic, avx2}, {generic, avx2, avx512}), avx2);
  try {
    (void)best_of({}, {avx512, avx512_bf16});
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "this program has loops for avx512, avx512_bf16 alone, which this processor does not run: "
                 "it was made on "
                 "another kind (make demo); make program builds for every kind");
  }
}

/// Every 16-bit code, and the floats around the borders of rounding.
std::vector<float> awkward_floats() {
  std::vector<float> all;
  for (std::uint32_t code = 0; code < 0x10000; ++code)
    for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      all.push_back(std::bit_cast<float>(code << 16 | low));
  return all;
}

template <class T>
void expect_rounded_as(Type type, InstructionSet set) {
  const std::vector<float> in = awkward_floats();
  std::vector<T> out(in.size());
  const auto n = std::int64_t(in.size());
  loops(set).elementwise.copy({out.data(), type, false}, {in.data(), Type::f32}, n - 3);
  for (std::size_t i = 0; i + 3 < in.size(); ++i)
    ASSERT_EQ(out[i].bits, T(in[i]).bits) << name(set) << " at " << std::bit_cast<std::uint32_t>(in[i]);
  std::vector<float> back(in.size());
  loops(set).elementwise.copy({back.data(), Type::f32, false}, {out.data(), type}, n - 3);
  for (std::size_t i = 0; i + 3 < in.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(float(out[i])))
        << name(set);
}

TEST(InstructionSets, each_rounds_to_sixteen_bits_as_the_half_types_do) {
  for (const InstructionSet set : all_here()) {
    expect_rounded_as<bf16>(Type::bf16, set);
    expect_rounded_as<f16>(Type::f16, set);
  }
}

}  // namespace
}  // namespace weft::fast
