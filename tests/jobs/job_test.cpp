#include "weft/jobs/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/jobs/files.h"
#include "tests/support/says.h"

using namespace weft;
using namespace weft::jobs;
using namespace weft::jobs::testing;
using ::testing::ElementsAre;

namespace {

std::string refused(const std::string& file) {
  return support::says([&] { static_cast<void>(read_job(file, "f")); });
}

}  // namespace

TEST(JobFile, says_what_runs_where) {
  const Job job = read_job(plain, "f");
  EXPECT_EQ(job.name, "gpt");
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.slots, 8);
  EXPECT_EQ(job.words.at(0), "Megatron-DeepSpeed/pretrain_gpt.py");
  EXPECT_EQ(job.words.size(), 5U);
  EXPECT_EQ(job.queue, "default");
  EXPECT_EQ(job.priority, 50);
  EXPECT_FALSE(job.elastic);
  EXPECT_EQ(job.pod.find("spec")->find("containers")->items[0].find("image")->text, "trainer:1");
  EXPECT_THAT(job.notices,
              ElementsAre("no effect here: spec.config.localRank (ranks find LOCAL_RANK themselves)"));
}

TEST(JobFile, may_grow_and_shrink) {
  const Job job = read_job(elastic, "f");
  ASSERT_TRUE(job.elastic);
  EXPECT_EQ(job.elastic->least, 1);
  EXPECT_EQ(job.elastic->most, 3);
  EXPECT_EQ(job.backoff, 10);
  EXPECT_FALSE(read_job(with(elastic, "enabled: true", "enabled: false"), "f").elastic);
  EXPECT_EQ(read_job(with(elastic, "expectedReplicas: 3", "expectedReplicas: 2"), "f").notices.size(), 1U);
}

TEST(JobFile, may_be_for_debugging) {
  const Job job = read_job(with(with(plain, "spec:\n",
                                     "spec:\n  runMode: {debug: {enabled: true, replicaSpecs: [{type: "
                                     "worker, skipInitContainer: true, command: [sleep, '9']}]}}\n"),
                                "- Megatron-DeepSpeed/pretrain_gpt.py\n", "- x.py\n"),
                           "f");
  ASSERT_TRUE(job.debug);
  EXPECT_TRUE(job.debug->skips_init);
  EXPECT_THAT(job.debug->command, ElementsAre("sleep", "9"));
}

TEST(JobFile, refuses_by_path_what_it_cannot_carry_over) {
  EXPECT_EQ(
      refused(with(plain, "localRank: true", "slotsPerWorkr: 1")),
      "usage: f: spec.config.slotsPerWorkr is not a key of a DeepSpeedJob, did you mean slotsPerWorker");
  EXPECT_EQ(refused(with(plain, "slotsPerWorker: 8", "slotsPerWorker: eight")),
            "usage: f: spec.config.slotsPerWorker is 'eight', not a whole number from 1 to 1024");
  EXPECT_EQ(refused(with(plain, "localRank: true", "otherArgs: [--x]")),
            "usage: f: spec.config.otherArgs are words for DeepSpeed's launcher, which does not run here; "
            "leave them out");
  EXPECT_EQ(refused(with(plain, "localRank: true", "autotune: tune")),
            "usage: f: spec.config.autotune: DeepSpeed's autotuner does not run here; weft bench train "
            "measures a configuration");
  EXPECT_EQ(refused(with(plain, "    replicas: 2\n", "    replicas: 2\n    restartPolicy: Always\n")),
            "usage: f: spec.worker.restartPolicy is Always, which would start a job that is done again; "
            "write OnFailure or Never");
  EXPECT_EQ(refused(with(elastic, "maxReplicas: 3, expectedReplicas: 3", "maxReplicas: 0")),
            "usage: f: spec.elastic.maxReplicas is '0', not a whole number from 1 to 65536");
  EXPECT_EQ(refused(with(elastic, "minReplicas: 1", "minReplicas: 5")),
            "usage: f: spec.elastic.maxReplicas 3 is below .minReplicas 5");
  EXPECT_EQ(refused(with(elastic, "expectedReplicas: 3", "expectedReplicas: 4")),
            "usage: f: spec.elastic.expectedReplicas 4 is not from 1 to 3");
  EXPECT_EQ(refused(with(elastic, "run: {", "run: {customCommand: [a], ")),
            "usage: f: spec.config.run names python and customCommand; leave one out");
  EXPECT_EQ(refused(with(elastic, "run: {python: [train.py, a.yml]}", "run: {python: []}")),
            "usage: f: spec.config.run names no program: python or customCommand");
  EXPECT_EQ(refused(with(plain, "name: gpt", "name: GPT_1")),
            "usage: f: metadata.name: 'GPT_1' is no name of a service: at most 52 small letters, digits and "
            "dashes, a letter first and no dash last");
  EXPECT_EQ(refused(with(plain, "DeepSpeedJob", "PyTorchTrainingJob")),
            "usage: f: kind is 'PyTorchTrainingJob', and weft reads DeepSpeedJob");
  EXPECT_EQ(
      refused(with(plain, "v1beta1", "v2")),
      "usage: f: apiVersion is 'batch.tensorstack.dev/v2', and weft reads batch.tensorstack.dev/v1beta1");
  EXPECT_EQ(refused(with(plain, "containers:\n", "containers: []\n        more:\n")),
            "usage: f: spec.worker.template.spec.containers names no container");
  EXPECT_EQ(refused("[]"), "usage: f: not a job file: there is no map in it");
  EXPECT_EQ(refused(with(plain, "spec:\n  scheduler:", "spec: 3\nmore:\n  scheduler:")),
            "usage: f: spec is not a map");
}

TEST(JobFile, passes_over_what_a_cluster_wrote_into_it) {
  EXPECT_EQ(read_job(with(plain, "  name: gpt\n", "  name: gpt\n  uid: x\n  generation: 3\n") +
                         "status: {phase: Running}\n",
                     "f")
                .name,
            "gpt");
}
