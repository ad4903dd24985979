#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/deepspeed_said.h"
#include "tests/support/source_dir.h"
#include "weft/base/format.h"
#include "weft/cli/dialect/deepspeed_rows.h"

using namespace weft;
using namespace weft::cli;
using dialect::Treatment;
using dialect::ds::Key;
using testing::Contains;
using testing::HasSubstr;

namespace {

using Json = nlohmann::json;

std::string without(const Key& key) {
  Json file = key.with.empty() ? Json::object() : Json::parse(key.with);
  const Json::json_pointer at = pointer_to(key.path);
  if (file.contains(at)) file[at.parent_pointer()].erase(at.back());
  return file.dump();
}

}  // namespace

TEST(DeepSpeedKeys, are_each_listed_once_with_a_reason_and_a_sample) {
  std::set<std::string_view> paths;
  for (const Key& key : dialect::ds::keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_FALSE(key.text.empty() || key.sample.empty()) << key.path;
    const bool acts = key.take != nullptr || !key.field.empty();
    EXPECT_EQ(acts, key.treatment == Treatment::honored) << key.path;
  }
  EXPECT_GE(paths.size(), 280u);
}

TEST(DeepSpeedKeys, that_are_honored_change_what_a_run_is_told) {
  for (const Key& key : dialect::ds::keys()) {
    if (key.treatment != Treatment::honored) continue;
    EXPECT_EQ(refusal(with_sample(key)), "") << key.path;
    if (!refusal(without(key)).empty()) continue;  // it must be there
    EXPECT_NE(said(with_sample(key)).all(), said(without(key)).all()) << with_sample(key);
  }
}

TEST(DeepSpeedKeys, without_effect_change_nothing_and_are_named_once_with_the_reason) {
  for (const Key& key : dialect::ds::keys()) {
    if (key.treatment != Treatment::no_effect) continue;
    const Said now = said(with_sample(key));
    EXPECT_EQ(now.all(), said(without(key)).all()) << key.path;
    EXPECT_THAT(now.rest.notices, Contains(HasSubstr(std::string(key.path)))) << key.path;
    EXPECT_THAT(now.rest.notices, Contains(HasSubstr(text("(", key.text, ")")))) << key.path;
  }
}

TEST(DeepSpeedKeys, that_weft_cannot_do_are_refused_by_their_path) {
  for (const Key& key : dialect::ds::keys()) {
    if (key.treatment != Treatment::refused) continue;
    const std::string what = refusal(with_sample(key));
    EXPECT_THAT(what, HasSubstr(text(key.text, ": "))) << key.path;
    EXPECT_THAT(what, HasSubstr(std::string(key.path)));
    for (const std::string_view one : split(key.harmless, '|')) {
      if (one.empty()) continue;
      const bool word = key.shape == dialect::ds::Shape::text;
      EXPECT_THAT(refusal(with(key, word ? Json(one) : Json::parse(one))),
                  testing::Not(HasSubstr(std::string(key.path))))
          << key.path;
    }
  }
}

TEST(DeepSpeedKeys, take_values_of_their_type_only) {
  for (const Key& key : dialect::ds::keys()) {
    const bool map = key.shape == dialect::ds::Shape::map;
    EXPECT_THAT(refusal(with(key, map ? Json(1) : Json::object())), HasSubstr(text(key.path, " is ")))
        << key.path;
    EXPECT_EQ(refusal(with(key, nullptr)), refusal(without(key))) << key.path;
  }
}

TEST(DeepSpeedKeys, of_the_specification_are_all_known) {
  for (const char* path : {"zero_optimization.stage",
                           "zero_optimization.stage3_max_live_parameters",
                           "zero_optimization.round_robin_gradients",
                           "zero_optimization.zero_hpz_partition_size",
                           "zero_optimization.offload_param.max_in_cpu",
                           "zero_optimization.offload_optimizer.fast_init",
                           "aio.overlap_events",
                           "train_batch_size",
                           "train_micro_batch_size_per_gpu",
                           "gradient_accumulation_steps",
                           "fp16.consecutive_hysteresis",
                           "bf16.enabled",
                           "gradient_clipping",
                           "steps_per_print",
                           "optimizer.type",
                           "scheduler.type",
                           "curriculum_learning.schedule_config.total_curriculum_step",
                           "data_efficiency.data_sampling.enabled",
                           "data_efficiency.data_routing.random_ltd.random_ltd_layer_id",
                           "flops_profiler.top_modules",
                           "comms_logger.prof_ops",
                           "tensorboard.job_name",
                           "wandb.team",
                           "comet.workspace",
                           "csv_monitor.enabled",
                           "activation_checkpointing.partition_activations",
                           "wall_clock_breakdown",
                           "elasticity.micro_batch_sizes"})
    EXPECT_TRUE(std::ranges::any_of(dialect::ds::keys(), [&](const Key& key) { return key.path == path; }))
        << path;
}

TEST(DeepSpeedPage, ends_with_every_key) {
  std::ifstream in(WEFT_SOURCE_DIR "/docs/deepspeed.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(page.ends_with(deepspeed_markdown()))
      << "write its end again, from \"## Key by key\" on: weft help deepspeed";
}
