// What a setting means that differs from the checkpoint's.
#include "weft/train/resume_settings.h"

#include <gmock/gmock.h>

#include "tests/support/refused.h"
#include "weft/base/fields.h"
#include "weft/base/format.h"
#include "weft/train/save_describe.h"

namespace weft {
namespace {

TEST(OnResume, is_said_of_every_setting_of_a_run) {
  TrainConfig config;
  const Fields fields(config);
  for (const auto& field : fields.all())
    EXPECT_NE(field->on_resume(), OnResume::untagged)
        << field->path()
        << ": say beside its name in describe() what it means where a checkpoint has another";
}

TEST(OnResume, tells_a_step_that_computes_something_else_from_one_that_adds_in_another_order) {
  RunFacts saved;
  TrainConfig config;
  config.optimizer.clip = 7;
  config.parallel.tp = 2;
  saved.run.seed = config.run.seed;
  EXPECT_EQ(kinship(saved, config, "x").another_step, "optimizer.clip is 1 there and 7 here");
  EXPECT_GT(kinship(saved, config, "x").rounding, 0);
  config.parallel.tp = 1;
  EXPECT_EQ(kinship(saved, config, "x").rounding, 0);
}

TEST(OnResume, tells_why_a_step_is_not_the_same_before_it_looks_at_settings) {
  RunFacts saved;
  TrainConfig config;
  config.optimizer.clip = 7;
  EXPECT_EQ(kinship(saved, config, "x").another_step, "its seed is another one, or was not saved");
  config.checkpoint.load_optimizer = false;
  EXPECT_EQ(kinship(saved, config, "x").another_step, "optimizer states were not loaded");
}

TEST(OnResume, names_what_may_change_and_does) {
  RunFacts saved;
  TrainConfig config;
  config.model.exact = true;
  config.batch.per_token_loss = true;
  config.batch.micro = 3;
  config.log.interval = 5;
  config.data.cache = "elsewhere";
  EXPECT_EQ(other_settings(saved, config),
            "other settings than the checkpoint's: model.exact is false there and true here, "
            "batch.per_token_loss is false there and true here");
}

TEST(OnResume, names_what_weights_that_are_taken_alone_meant_otherwise) {
  RunFacts saved;
  TrainConfig config;
  saved.configuration.model.heads = 4;
  config.model.heads = 2;
  config.model.experts.count = 8;
  config.optimizer.clip = 7;
  constexpr const char* first =
      "the weights are those of another model, to which they meant something else: model.heads is 4 there "
      "and 2 here";
  EXPECT_EQ(another_model(saved, config), text(first, ", model.experts.count is 0 there and 8 here"));
  config.checkpoint.upcycle = true;
  EXPECT_EQ(another_model(saved, config), first);
  config.model.heads = 4;
  EXPECT_EQ(another_model(saved, config), "");
}

// The length of a weight decay that stays as it is says nothing but how long the run was.
TEST(OnResume, lets_a_run_be_made_longer_where_no_schedule_moves) {
  RunSchedules saved, given;
  saved.decay.length = 40;
  given.decay.length = 48;
  EXPECT_NO_THROW(must_agree(saved, given, "x"));
  given.decay.growth = DecayGrowth::linear;
  EXPECT_THAT(refused([&] { must_agree(saved, given, "x"); }),
              ::testing::AllOf(::testing::HasSubstr("weight_decay.growth is constant there and linear here"),
                               ::testing::HasSubstr("weight_decay.length is 40 there and 48 here")));
  saved.decay.growth = DecayGrowth::linear;
  EXPECT_THAT(refused([&] { must_agree(saved, given, "x"); }),
              ::testing::HasSubstr("weight_decay.length is 40 there and 48 here"));
}

}  // namespace
}  // namespace weft
