// Forwards computed beside backwards while rows of experts travel: when what is computed changes no bit.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Case {
  ParallelConfig parallel;
  bool recomputes = false;
};

/// What comes of a layout as it is, beside each other, and with weight gradients put off as well.
class Besides {
 public:
  Besides(ModelConfig config, Cut cut) : config_(std::move(config)), cut_(std::move(cut)) {
    plain_ = train(config_, cut_);
  }
  void expect_the_same() {
    cut_.parallel.overlap_experts = true;
    for (const bool delayed : {false, true}) {
      cut_.parallel.delay_weight_grads = delayed;
      const Curve seen = train(config_, cut_);
      EXPECT_EQ(seen.losses, plain_.losses) << name_of(cut_);
      EXPECT_EQ(seen.norms, plain_.norms) << name_of(cut_);
      EXPECT_EQ(seen.evaluations, plain_.evaluations) << name_of(cut_);
      EXPECT_TRUE(seen.copies_agree) << name_of(cut_);
      // The one that comes first, and the other of a pair.
      if (cut_.parallel.pp == 1) {
        EXPECT_EQ(seen.most_remembered.front(), 2) << name_of(cut_);
      }
    }
  }

 private:
  ModelConfig config_;
  Cut cut_;
  Curve plain_;
};

int layers_of(const ParallelConfig& parallel) { return parallel.pp > 1 ? 4 : 2; }

std::vector<Case> cases() {
  return {{{.dp = 2, .ep = 2}},
          {{.dp = 2, .ep = 2}, true},
          {{.tp = 2, .dp = 1, .ep = 2, .etp = 1, .sequence = true}},
          {{.tp = 2, .dp = 1, .etp = 2}},
          {{.tp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1}},
          {{.cp = 2, .dp = 2, .ep = 4}},
          {{.dp = 4, .ep = 2, .zero = 2}},
          {{.dp = 4, .ep = 2, .zero = 3}},
          {{.dp = 2, .ep = 2, .zero = 3}, true},
          {{.pp = 2, .dp = 2, .ep = 2, .virtual_stages = 2, .zero = 3}},
          {{.dp = 4, .ep = 2, .overlap_reduce = true, .bucket_elements = 100}},
          {{.pp = 2, .dp = 2, .ep = 2, .virtual_stages = 2}},
          {{.pp = 2, .dp = 2, .ep = 2, .virtual_stages = 2, .microbatch_group = 4}, true},
          {{.tp = 2, .pp = 2, .dp = 1, .ep = 2, .etp = 1, .sequence = true, .virtual_stages = 2}}};
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  return name_of({.parallel = info.param.parallel}) + (info.param.recomputes ? "_recomputes" : "");
}

class ExpertsBeside : public ::testing::TestWithParam<Case> {};

}  // namespace

TEST_P(ExpertsBeside, change_no_bit) {
  const auto& [parallel, recomputes] = GetParam();
  ModelConfig config = shape_of("mixture", layers_of(parallel));
  if (recomputes) config.recompute = {.what = Recompute::full, .layers = 1};
  for (const bool exact : {false, true})
    Besides(config, {.parallel = parallel, .micro_batch = 1, .steps = rounds(3), .exact = exact})
        .expect_the_same();
}

// Words that the output shares with the embedding have one sum in one stage: each microbatch's terms of both
// come before the next one's.
TEST_P(ExpertsBeside, change_no_bit_of_words_that_have_two_uses) {
  const auto& [parallel, recomputes] = GetParam();
  ModelConfig config = shape_of("mixture", layers_of(parallel));
  config.tied_output = true;
  config.ahead = {.depths = 1, .factor = 0.5};
  Besides(config, {.parallel = parallel, .micro_batch = 1, .steps = rounds(3)}).expect_the_same();
}

TEST_P(ExpertsBeside, hold_what_the_counting_device_counts) {
  const ModelConfig config = shape_of("mixture", layers_of(GetParam().parallel));
  for (const bool delayed : {false, true}) {
    Cut cut{.parallel = GetParam().parallel, .micro_batch = 1, .always = {0, 2, 5}};
    cut.parallel.overlap_experts = true;
    cut.parallel.delay_weight_grads = delayed;
    EXPECT_EQ(memory_difference(config, cut), "") << delayed;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExpertsBeside, ::testing::ValuesIn(cases()), name_of_case);
