// Forms of BERT and T5 beside those of the other comparisons, each under every kind of cut.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int few = rounds(4);  // steps: with dropout and a warm Adam, a mistake shows in the second

struct Form {
  const char* name;
  const char* family;
  void (*change)(ModelConfig&);
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

class Encoders : public ::testing::TestWithParam<Form> {
 protected:
  /// Four layers, of a T5 two in each stack.
  static ModelConfig model() {
    ModelConfig config = shape_of(GetParam().family, 4);
    GetParam().change(config);
    complete(config);
    return config;
  }
};

}  // namespace

TEST_P(Encoders, train_as_one_rank_does) {
  const ModelConfig config = model();
  const Curve one = train(config, {.parallel = {.dp = 1}, .micro_batch = 8, .steps = few});
  const std::vector<Cut> cuts{{{.tp = 4, .dp = 1}, 2, few},
                              {{.tp = 2, .dp = 2, .sequence = true, .zero = 1}, 1, few},
                              {{.cp = 2, .dp = 2}, 2, few},
                              {{.cp = 4, .dp = 1, .context = ContextForm::gather}, 2, few},
                              {{.pp = 4, .dp = 1, .schedule = "zb-h1"}, 1, few},
                              {{.tp = 2, .pp = 2, .cp = 2, .dp = 1, .sequence = true}, 2, few}};
  for (std::size_t i = 0; i < cuts.size(); i += std::size_t(every(5)))
    EXPECT_EQ(difference(train(config, cuts[i]), one), "") << name_of(cuts[i]);
}

TEST_P(Encoders, give_the_bits_of_one_rank_in_exact_mode) {
  const ModelConfig config = model();
  Cut cut{.parallel = {.dp = 1}, .micro_batch = 1, .steps = 2, .exact = true};
  const Curve one = train(config, cut);
  cut.parallel = {.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 1};
  const Curve all = train(config, cut);
  EXPECT_EQ(all.losses, one.losses);
  EXPECT_EQ(all.norms, one.norms);
  EXPECT_EQ(all.evaluations, one.evaluations);
  EXPECT_TRUE(all.copies_agree);
}

// Bit for bit, and what it keeps is what the counting device says.
TEST_P(Encoders, are_the_same_where_norms_and_mlps_are_made_again) {
  ModelConfig config = model();
  const Cut cut{.parallel = {.tp = 2, .pp = 2, .cp = 2, .dp = 1, .sequence = true}, .steps = 2};
  const Curve plain = train(config, cut);
  config.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::norm, RecomputeModule::mlp}};
  const Curve again = train(config, cut);
  EXPECT_EQ(again.losses, plain.losses);
  EXPECT_EQ(again.norms, plain.norms);
  EXPECT_EQ(memory_difference(config, cut), "");
}

TEST_P(Encoders, hold_what_the_counting_device_counts) {
  const Cut cut{{.tp = 2, .pp = 2, .cp = 2, .dp = 1, .sequence = true}};
  EXPECT_EQ(memory_difference(model(), cut), "");
}

INSTANTIATE_TEST_SUITE_P(
    Of, Encoders,
    ::testing::Values(Form{"t5_learned", "t5", [](ModelConfig& m) { m.positions = Positions::learned; }},
                      Form{"t5_rotary", "t5", [](ModelConfig& m) { m.positions = Positions::rotary; }},
                      Form{"t5_gated", "t5",
                           [](ModelConfig& m) {  // as T5 1.1 has it
                             m.norm = NormKind::rms;
                             m.gated = true;
                             m.linear_bias = m.qkv_bias = m.tied_output = false;
                             m.softmax_scale = 1;
                           }},
                      Form{"t5_after_norm", "t5", [](ModelConfig& m) { m.residual_after_norm = true; }},
                      Form{"bert_rotary", "bert", [](ModelConfig& m) { m.positions = Positions::rotary; }},
                      Form{"bert_after_norm", "bert", [](ModelConfig& m) { m.residual_after_norm = true; }},
                      Form{"bert_without_head", "bert", [](ModelConfig& m) { m.sentence_order = false; }}),
    [](const auto& of) { return std::string(of.param.name); });
