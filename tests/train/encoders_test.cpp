// BERTs and T5s that stop under one layout and go on under another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary.h"
#include "tests/train/tiny_run.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

/// Every rank adds what one rank adds: exact mode.
TrainConfig encoder_run(const std::string& family) {
  TrainConfig c = tiny_run();
  c.model.kind = family;
  c.model.exact = true;
  c.model.layers = family == "t5" ? 2 : 4;
  c.model.sequence = c.model.max_positions = 16;
  c.model.vocabulary = 64;
  if (family == "t5") {
    c.model.decoder_sequence = 8;
    c.model.positions = Positions::relative;
    c.model.relative = {.buckets = 8, .farthest = 12};
  }
  c.data.index = IndexKind::stored;
  return c;
}

TrainConfig encoder_run(const std::string& family, const ParallelConfig& layout,
                        const TemporaryDirectory& folder) {
  TrainConfig c = saving(encoder_run(family), folder.path());
  c.checkpoint.verify = true;
  c.parallel = layout;
  c.run.ranks = layout.tp * layout.cp * layout.pp * layout.dp;
  return completed(c);
}

struct Move {
  const char* name;
  const char* family;
  ParallelConfig from, to;
};
void PrintTo(const Move& move, std::ostream* out) { *out << move.name; }

class EncoderRuns : public ::testing::TestWithParam<Move> {};

}  // namespace

TEST_P(EncoderRuns, go_on_under_another_layout_with_the_same_bits) {
  const auto& [name, family, from, to] = GetParam();
  const TemporaryDirectory whole, halves;
  const TrainConfig one = encoder_run(family, {.dp = 1}, whole);
  const RunData data = open_run_data(one);
  const Told unbroken = train(one, {.data = &data});
  TrainConfig first = encoder_run(family, from, halves);
  first.exit.interval = 3;
  const Told before = train(first, {.data = &data});
  EXPECT_EQ(tensors_of(halves / "step_00000003"), tensors_of(whole / "step_00000003"));
  const Told after = train(going_on(encoder_run(family, to, halves)), {.data = &data});
  EXPECT_THAT(after.said, HasSubstr("every bit equal"));
  EXPECT_EQ(joined(before.losses, after.losses), unbroken.losses);
  EXPECT_EQ(joined(before.norms, after.norms), unbroken.norms);
  EXPECT_EQ(after.validations.back(), unbroken.validations.back());
  EXPECT_EQ(tensors_of(halves / "step_00000006"), tensors_of(whole / "step_00000006"));
}

INSTANTIATE_TEST_SUITE_P(Of, EncoderRuns,
                         ::testing::Values(Move{"bert_from_stages_to_heads",
                                                "bert",
                                                {.pp = 2, .dp = 2, .zero = 1},
                                                {.tp = 2, .cp = 2, .dp = 1, .sequence = true}},
                                           Move{"bert_from_heads_to_ranks_of_other_samples",
                                                "bert",
                                                {.tp = 4, .dp = 1},
                                                {.dp = 4, .zero = 3}},
                                           Move{"t5_from_stages_to_heads",
                                                "t5",
                                                {.pp = 4, .dp = 1, .schedule = "zb-h1"},
                                                {.tp = 2, .cp = 2, .dp = 1, .sequence = true}},
                                           Move{"t5_from_cut_texts_to_stages",
                                                "t5",
                                                {.cp = 2, .dp = 2, .zero = 2},
                                                {.tp = 2, .pp = 2, .dp = 2, .zero = 1}}),
                         [](const auto& of) { return std::string(of.param.name); });
