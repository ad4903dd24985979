// Sequences that are cut come together again, and sums over them by pieces.
#include "weft/nn/token_cut.h"

#include <gtest/gtest.h>

#include "tests/support/numbers.h"
#include "weft/backend/open.h"
#include "weft/comm/threads.h"
#include "weft/ops/norm.h"

using namespace weft;

TEST(TokenCut, brings_a_sequence_together_and_takes_its_own_part) {
  run_as_threads(2, [](Communicator& circle) {
    const auto device = open_device("cpu", {.threads = 1});
    const TokenCut cut(&circle);
    const Tensor mine =
        of(*device, {4, 1}, Dtype::i32,
           circle.rank() == 0 ? std::vector<double>{0, 1, 6, 7} : std::vector<double>{2, 3, 4, 5});
    const Tensor whole = cut.whole(mine);
    EXPECT_EQ(numbers(whole), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(numbers(cut.here(whole)), numbers(mine));
  });
}

TEST(TokenCut, shares_out_what_does_not_go_evenly) {
  run_as_threads(4, [](Communicator& circle) {
    const Share share = TokenCut(&circle).share(6);
    EXPECT_EQ(share.from, 6 * circle.rank() / 4);
    EXPECT_EQ(share.from + share.count, 6 * (circle.rank() + 1) / 4);
  });
}

TEST(TokenCut, has_at_most_sixteen_pieces_and_only_equal_ones) {
  EXPECT_EQ(pieces_of(1024), 16);
  EXPECT_EQ(pieces_of(24), 8);
  EXPECT_EQ(pieces_of(7), 1);
}

// 1 is lost beside 2^24, and 2 is not.
TEST(AddedAsTree, adds_halves_first) {
  const auto device = open_device("cpu", {.threads = 1});
  const double large = 1 << 24;
  EXPECT_EQ(numbers(added_as_tree(of(*device, {4, 1}, Dtype::f32, {large, 0, 1, 1}))).front(), large + 2);
  EXPECT_EQ(numbers(added_as_tree(of(*device, {3, 1}, Dtype::f32, {large, 1, 1}))).front(), large);
}

class NormBackward : public ::testing::TestWithParam<const char*> {};

TEST_P(NormBackward, gives_every_piece_the_bits_that_it_has_alone) {
  const auto device = open_device(GetParam(), {.threads = 2});
  constexpr std::int64_t s = 96, h = 200, pieces = 4;
  std::vector<double> values;
  for (std::int64_t i = 0; i < s * h; ++i) values.push_back(double(i * 7919 % 1009) / 500 - 1);
  const Tensor x = of(*device, {s, 1, h}, Dtype::f32, values);
  const Tensor gain = of(*device, {h}, Dtype::f32, std::vector<double>(h, 1.5));
  const ops::NormOut out = ops::norm(x, {gain, gain}, {});
  const auto sums = [&](const Shape& shape) {
    return NormGrads{empty_like(x),
                     of(*device, shape, Dtype::f32, std::vector<double>(std::size_t(shape.elements()), 0.25)),
                     of(*device, shape, Dtype::f32, std::vector<double>(std::size_t(shape.elements()), 0.5))};
  };
  const NormGrads all = sums({pieces, h});
  ops::norm_backward_into(all, x, {}, {x, out.stats, gain}, {});
  for (std::int64_t i = 0; i < pieces; ++i) {
    const auto cut = [&](const Tensor& t) { return t.slice(0, i * s / pieces, s / pieces); };
    NormGrads one = sums({h});
    one.dx = cut(one.dx);
    ops::norm_backward_into(one, cut(x), {}, {cut(x), {cut(out.stats.mean), cut(out.stats.rstd)}, gain}, {});
    EXPECT_EQ(numbers(all.dgain.at(0, i)), numbers(one.dgain));
    EXPECT_EQ(numbers(all.dbias.at(0, i)), numbers(one.dbias));
    EXPECT_EQ(numbers(cut(all.dx)), numbers(one.dx));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, NormBackward, ::testing::Values("cpu", "cpu:reference"),
                         [](const auto& test) { return test.index == 0 ? "fast" : "reference"; });
