// Samples that grow, as DeepSpeed's files say it: the old block and the metrics of the data-efficiency
// library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/deepspeed_said.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::cli;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

std::string metrics(const std::string& inside) {
  return R"({"data_efficiency": {"enabled": true, "seed": 1, "data_sampling": {"enabled": true, "num_epochs": 1,
    "curriculum_learning": {"enabled": true, "curriculum_metrics": {)" +
         inside + "}}}}}";
}

constexpr const char* path = "data_efficiency.data_sampling.curriculum_learning";

}  // namespace

TEST(DeepSpeedCurriculum, is_read_in_its_old_form) {
  const Said now = said(R"({"curriculum_learning": {"enabled": true, "curriculum_type": "seqlen",
      "min_difficulty": 8, "max_difficulty": 1024, "schedule_type": "fixed_root",
      "schedule_config": {"total_curriculum_step": 15000, "difficulty_step": 16, "root_degree": 2}}})");
  EXPECT_THAT(now.rest.notices, IsEmpty());
  for (const auto& [field, word] : {std::pair("schedule", "fixed_root"),
                                    {"form", "truncate"},
                                    {"least", "8"},
                                    {"most", "1024"},
                                    {"steps", "15000"},
                                    {"multiple", "16"},
                                    {"root", "2"}})
    EXPECT_THAT(now.fields.at(text("curriculum.", field)), ElementsAre(word)) << field;
}

// As Megatron-DeepSpeed's examples bring it.
TEST(DeepSpeedCurriculum, is_read_as_a_metric) {
  const Said now =
      said(metrics(R"("seqlen_reshape": {"index_to_sample_path": "dummy", "index_to_metric_path": "dummy",
      "difficulty_type": "value", "clustering_type": "single_cluster", "min_difficulty": 80, "max_difficulty": 2048,
      "schedule_type": "fixed_discrete", "schedule_config": {"difficulty": [80, 160, 2048], "max_step": [5, 10]}})"));
  EXPECT_THAT(now.fields.at("curriculum.schedule"), ElementsAre("fixed_discrete"));
  EXPECT_THAT(now.fields.at("curriculum.form"), ElementsAre("reshape"));
  EXPECT_THAT(now.fields.at("curriculum.lengths"), ElementsAre("80", "160", "2048"));
  EXPECT_THAT(now.fields.at("curriculum.until"), ElementsAre("5", "10"));
}

// As the templates of Megatron-DeepSpeed's data_efficiency examples bring it, with one metric and with two.
TEST(DeepSpeedCurriculum, takes_samples_by_an_index) {
  const std::string
      rare = R"("vocab_rarity": {"index_to_sample_path": "i/s", "index_to_metric_path": "i/m",
      "difficulty_type": "percentile", "clustering_type": "schedule_based", "min_difficulty": 1, "max_difficulty": 100,
      "schedule_type": "fixed_root", "schedule_config": {"total_curriculum_step": 110000, "difficulty_step": 1, "root_degree": 2}})",
      front = R"("seqlen_truncate": {"index_to_sample_path": "dummy", "index_to_metric_path": "dummy",
      "difficulty_type": "value", "clustering_type": "single_cluster", "min_difficulty": 80, "max_difficulty": 2048,
      "schedule_type": "fixed_linear", "schedule_config": {"total_curriculum_step": 110000, "difficulty_step": 8}})";
  const std::string word =
      "vocab_rarity:samples=i/s,values=i/"
      "m,by=percentile,clusters=schedule_based,curve=fixed_root,least=1,most=100,"
      "steps=110000,multiple=1,root=2";
  const Said one = said(metrics(rare));
  EXPECT_THAT(one.fields.at("data.difficulty.metrics"), ElementsAre(word));
  EXPECT_THAT(one.fields.at("data.difficulty.seed"), ElementsAre("1"));
  EXPECT_THAT(one.fields.at("curriculum.schedule"), ElementsAre("none"));
  const Said two = said(metrics(rare + "," + front));
  EXPECT_THAT(
      two.fields.at("data.difficulty.metrics"),
      ElementsAre("seqlen_truncate:by=value,clusters=single_cluster,curve=fixed_linear,least=80,most=2048,"
                  "steps=110000,multiple=8",
                  word));
  EXPECT_THAT(two.fields.at("curriculum.schedule"), ElementsAre("fixed_linear"));
  EXPECT_THAT(two.fields.at("curriculum.least"), ElementsAre("80"));
}

TEST(DeepSpeedCurriculum, refuses_metrics_of_an_index_by_their_path) {
  const std::string block = text(path, ".curriculum_metrics.rarity");
  EXPECT_EQ(refusal(metrics(R"("rarity": {"difficulty_type": "percentile"})")),
            text("ds.json: ", block, " needs clustering_type"));
  EXPECT_EQ(refusal(metrics(R"("rarity": 3)")), text("ds.json: ", block, " is 3, not a group of keys"));
  const std::string most =
      R"("difficulty_type": "value", "clustering_type": "schedule_based", "schedule_type": "fixed_linear",
      "min_difficulty": 1, "max_difficulty": 9)";
  EXPECT_EQ(
      refusal(metrics(R"("rarity": {)" + most + "}")),
      text("ds.json: ", block, ".schedule_config is missing, or no group of keys: how its difficulty grows"));
  EXPECT_EQ(refusal(metrics(R"("rarity": {)" + most + R"(, "schedule_config": {"steps": 3}})")),
            text("ds.json: ", block, ".schedule_config.steps is no key of DeepSpeed's"));
  EXPECT_THAT(
      refusal(metrics(R"("rarity": {)" + most + R"(, "index_to_samples_path": "s", "schedule_config": {}})")),
      HasSubstr(".rarity.index_to_samples_path is no key of DeepSpeed's, did you mean"));
  EXPECT_EQ(refusal(metrics(R"("rarity": {)" + most +
                            R"(, "index_to_sample_path": "a,b", "schedule_config": {}})")),
            text("ds.json: ", block, ".index_to_sample_path a,b has a comma in it: give it another name"));
  EXPECT_THAT(refusal(metrics(R"("seqlen_truncate": {"min_dificulty": 8})")),
              HasSubstr(".seqlen_truncate.min_dificulty is no key of DeepSpeed's, did you mean"));
}

TEST(DeepSpeedCurriculum, must_say_how_samples_grow) {
  EXPECT_EQ(refusal(R"({"curriculum_learning": {"enabled": true}})"),
            "ds.json: curriculum_learning.enabled needs curriculum_learning.schedule_type: how samples grow");
  EXPECT_EQ(refusal(metrics("")), text("ds.json: ", path, ".enabled needs ", path,
                                       ".curriculum_metrics.seqlen_truncate or .seqlen_reshape with a "
                                       "schedule_type, or a metric of an index: how "
                                       "samples grow"));
  EXPECT_EQ(refusal(R"({"data_efficiency": {"enabled": true, "data_sampling": {"enabled": true}}})"),
            text("ds.json: data_efficiency.data_sampling.enabled without ", path,
                 " only shuffles samples in another way: leave it out"));
  EXPECT_EQ(refusal(R"({"curriculum_learning": {"enabled": true, "schedule_type": "custom"}})"),
            "ds.json: curriculum_learning.schedule_type custom: weft has fixed_linear, "
            "fixed_root and fixed_discrete");
  EXPECT_EQ(
      refusal(R"({"curriculum_learning": {"enabled": true, "schedule_type": "fixed_discrete",
                        "schedule_config": {"difficulty": [8, "16"]}}})"),
      "ds.json: curriculum_learning.schedule_config.difficulty is [8,\"16\"], not a list of whole numbers");
}

TEST(DeepSpeedCurriculum, in_two_forms_must_say_the_same) {
  const std::string one = R"("schedule_type": "fixed_linear", "min_difficulty": 8)";
  EXPECT_EQ(
      refusal(metrics(R"("seqlen_truncate": {)" + one + R"(}, "seqlen_reshape": {)" + one + "}")),
      text("ds.json: ", path, ".curriculum_metrics.seqlen_truncate.schedule_type truncate and ", path,
           ".curriculum_metrics.seqlen_reshape.schedule_type reshape contradict each other: leave one out"));
}
