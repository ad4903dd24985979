// Whoever looks at greatest scores: models that have them, and weights that they follow.
#include "weft/train/validate.h"

#include "tests/train/completing.h"

using namespace weft;
using namespace weft::testing;

namespace {

OptimizerConfig& clipping(TrainConfig& c) {
  c.optimizer.qk_clip.on = true;
  return c.optimizer;
}

}  // namespace

TEST(ValidateScores, refuses_models_whose_scores_do_not_follow_weights) {
  refused(
      [](TrainConfig& c) {
        (void)clipping(c);
        c.model.qk_norm = true;
      },
      "{optimizer.qk_clip.on}: queries and keys are normed behind their weights ({model.qk_norm}, "
      "{model.qk_norm_whole}), and their scores stay however small these become: leave one of them out");
  refused(
      [](TrainConfig& c) {
        (void)clipping(c);
        c.model.qkv_limit = 8;
      },
      "{optimizer.qk_clip.on}: queries and keys are kept within {model.qkv_limit} 8 behind their weights, "
      "and "
      "do not shrink as these do: leave one of them out");
  refused(
      [](TrainConfig& c) {
        (void)clipping(c);
        c.model.scores.cap = 50;
      },
      "{optimizer.qk_clip.on}: scores stay below {model.scores.cap} 50 anyway, and do not shrink as weights "
      "do: leave one of them out");
}

TEST(ValidateScores, refuses_powers_that_leave_queries_or_keys_alone) {
  for (const double alpha : {0.0, 1.0})
    refused([&](TrainConfig& c) { clipping(c).qk_clip.alpha = alpha; },
            alpha == 0 ? "{optimizer.qk_clip.alpha} 0 is not between 0 and 1: queries and keys both shrink"
                       : "{optimizer.qk_clip.alpha} 1 is not between 0 and 1: queries and keys both shrink");
}

TEST(ValidateScores, refuses_ranks_that_hold_other_weights) {
  refused([](TrainConfig& c) { clipping(c).kind = OptimizerKind::zerooneadam; },
          "{optimizer.qk_clip.on}: ranks that train by {optimizer.kind=zerooneadam} hold other weights "
          "between their meetings: leave one of them out");
}

TEST(ValidateScores, refuses_models_of_two_stacks) {
  const auto two_stacks = [](TrainConfig& c) {
    c.model.kind = "t5";
    c.model.decoder_sequence = 32;
  };
  refused(
      [&](TrainConfig& c) {
        two_stacks(c);
        c.log.greatest_score = true;
      },
      "{log.greatest_score}: a model of the family t5 has two stacks, and greatest scores are kept by the "
      "layers of one: leave it out");
}
