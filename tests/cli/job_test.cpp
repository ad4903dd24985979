#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/told.h"
#include "tests/support/temporary.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/tree.h"
#include "weft/cli/job_small.h"
#include "weft/cli/verbs.h"

using namespace weft;
using namespace weft::cli;
using testing::HasSubstr;

namespace {

constexpr const char* two_ranks = R"(apiVersion: batch.tensorstack.dev/v1beta1
kind: DeepSpeedJob
metadata: {name: gpt}
spec:
  config:
    slotsPerWorker: 2
    run:
      python:
        - Megatron-DeepSpeed/pretrain_gpt.py
        - "--num-layers=24"
        - "--hidden-size=2048"
        - "--num-attention-heads=16"
        - "--seq-length=2048"
        - "--max-position-embeddings=2048"
        - "--micro-batch-size=16"
        - "--global-batch-size=512"
        - "--train-tokens=26000000000"
        - "--lr=2.0e-4"
        - "--pipeline-model-parallel-size=2"
        - "--data-path=nowhere"
  worker:
    replicas: 1
    template: {spec: {containers: [{name: worker, image: i}]}}
)";

class Job : public ::testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content) const {
    const auto path = folder_.path() / name;
    write_atomically(path, content);
    return path.string();
  }
  support::TemporaryDirectory folder_;
};

}  // namespace

TEST_F(Job, takes_amounts_as_kubernetes_writes_them) {
  const auto render = [](const std::string& option) {
    return told(job_verb(), {"render", "--name", "x", "--image", "i:1", option, "train", "gpt"});
  };
  for (const char* option : {"--cpu=2", "--cpu=0.5", "--cpu=500m", "--memory=64Gi", "--memory=128000000"})
    EXPECT_EQ(render(option).status, 0) << option;
  EXPECT_EQ(
      render("--memory=64GiB").err,
      "job render: --memory: '64GiB' is no amount above 0 as Kubernetes writes it: 2, 0.5, 500m, 64Gi\n");
  for (const char* option : {"--cpu=0", "--cpu=-1", "--cpu=1.", "--cpu=.5", "--cpu=1.2.3", "--memory="})
    EXPECT_EQ(render(option).status, 2) << option;
}

TEST_F(Job, renders_a_file_for_kubectl) {
  const Told said = told(job_verb(), {"render", "--image", "weft:1", file("job.yaml", two_ranks)});
  EXPECT_EQ(said.status, 0);
  EXPECT_THAT(said.out, HasSubstr("kind: Service\n"));
  EXPECT_THAT(said.out, HasSubstr("\n---\n"));
  EXPECT_THAT(said.out, HasSubstr("image: \"weft:1\""));
  EXPECT_EQ(said.err, "");
}

TEST_F(Job, says_that_weft_must_be_in_the_files_image) {
  EXPECT_THAT(told(job_verb(), {"render", file("job.yaml", two_ranks)}).err,
              HasSubstr("the image is the job file's own, and weft must be in it; --image names another\n"));
}

TEST_F(Job, renders_flags_alone) {
  const Told said =
      told(job_verb(), {"render", "--name", "a", "--image=i", "--nodes", "2", "--slots", "8", "--gpus", "8",
                        "--claim", "data:/data", "train", "gpt", "--num-layers", "2"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("claimName: data"));
  EXPECT_THAT(said.out, HasSubstr("fsGroup: 1000\n")) << "or the image's user cannot write there";
  EXPECT_THAT(said.out, HasSubstr("nvidia.com/gpu: 8"));
  EXPECT_THAT(said.out, HasSubstr("- train\n"));
}

TEST_F(Job, renders_from_flags_what_a_file_would_say) {
  const Told said = told(job_verb(), {"render",          "--name", "a",     "--image=i", "--nodes",  "2:4",
                                      "--slots",         "8",      "--cpu", "16",        "--memory", "64Gi",
                                      "--env",           "A=b=c",  "--env", "D=",        "--queue",  "lab",
                                      "--backoff-limit", "9",      "train", "gpt"});
  EXPECT_EQ(said.status, 0) << said.err;
  for (const char* line : {"completions: 4\n", "2:4", "cpu: \"16\"\n", "memory: \"64Gi\"\n", "- name: A\n",
                           "value: \"b=c\"\n", "kueue.x-k8s.io/queue-name: lab\n", "backoffLimit: 9\n"})
    EXPECT_THAT(said.out, HasSubstr(line));
}

TEST_F(Job, may_be_rendered_to_survive_no_failure) {
  const Told said =
      told(job_verb(), {"render", "--name", "a", "--image=i", "--backoff-limit", "0", "train", "gpt"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("backoffLimit: 0\n"));
}

TEST_F(Job, is_made_small_with_its_deepspeed_file) {
  const std::string ds =
      file("ds.json", R"({"train_batch_size": 512, "train_micro_batch_size_per_gpu": 16, // ours
    "zero_optimization": {"stage": 2}, "curriculum_learning": {"enabled": true}, "fp16": {"enabled": true}})");
  std::vector<std::string> words{"--fp16", "--deepspeed_config", "x/ds.json"};
  const SmallFile small = small_deepspeed(words, folder_ / "job.yaml", folder_ / "runs");
  EXPECT_EQ(words[2], (folder_ / "runs/ds.json").string());
  EXPECT_EQ(small.path, words[2]);
  EXPECT_EQ(read_yaml(small.content, "small"),
            read_yaml(R"({"zero_optimization": {"stage": 2}, "fp16": {"enabled": true}})", "same"));
  std::vector<std::string> whole{"--deepspeed-config=" + ds};
  small_deepspeed(whole, "elsewhere/job.yaml", "runs");
  EXPECT_EQ(whole[0], "--deepspeed-config=runs/ds.json");
  std::vector<std::string> none{"--fp16"};
  EXPECT_EQ(small_deepspeed(none, "job.yaml", "runs").content, "");
}

TEST_F(Job, is_not_made_small_where_that_would_be_another_job) {
  const std::string lost =
      file("lost.yaml", text(two_ranks).replace(text(two_ranks).find("--data-path=nowhere"), 19,
                                                "--deepspeed_config=a/ds.json"));
  EXPECT_EQ(
      told(job_verb(), {"run", "--small", lost}).err,
      text("job run: --small keeps what a/ds.json says of layout and precision, and it is neither there nor ",
           (folder_ / "ds.json").string(), "\n"));
  const std::string other =
      file("other.yaml", text(two_ranks).replace(text(two_ranks).find("pretrain_gpt.py"), 15, "finetune.py"));
  EXPECT_EQ(told(job_verb(), {"run", "--small", other}).err,
            text("job run: --small makes weft's own training small, and ", other,
                 " runs Megatron-DeepSpeed/finetune.py; leave --small out\n"));
  const std::string kept =
      file("kept.yaml", text(two_ranks).replace(text(two_ranks).find("--data-path=nowhere"), 19,
                                                "--deepspeed_config=a/ds.json"));
  file("ds.json", "{}");
  EXPECT_EQ(told(job_verb(), {"run", "--small", "--runs=", kept}).err,
            "job run: --small writes a small ds.json; say where with --runs\n");
}

TEST_F(Job, lets_files_travel_along) {
  const Told said =
      told(job_verb(), {"render", "--file", file("ds.json", "{}\n"), file("job.yaml", two_ranks)});
  EXPECT_THAT(said.out, HasSubstr("kind: ConfigMap"));
  EXPECT_THAT(said.out, HasSubstr("ds.json: \"{}\\n\""));
}

TEST_F(Job, refuses_what_it_cannot_do_and_says_what_it_can) {
  const auto says = [](std::vector<std::string> words) { return told(job_verb(), std::move(words)).err; };
  EXPECT_EQ(
      says({}),
      "job: say render, run, status, events, logs or resources: weft job render job.yaml; weft help job "
      "shows examples\n");
  EXPECT_EQ(says({"render"}),
            "job render: name a job file, or a program and its flags: weft job render --name n --image i "
            "train gpt …\n");
  EXPECT_EQ(says({"render", "train", "gpt"}),
            "job render: --name is missing: what the job is called, where no file says it\n");
  EXPECT_EQ(says({"render", "--name", "a", "train", "gpt"}),
            "job render: --image is missing: an image with weft in it, where no file names one\n");
  EXPECT_EQ(says({"render", "--knd", "job", "x.yaml"}),
            "job render: --knd is not an option, did you mean kind; weft help job lists them\n");
  EXPECT_EQ(says({"render", "--kind", "pod", "x.yaml"}),
            "job render: --kind: 'pod' is not job, jobset, trainjob or mpijob\n");
  EXPECT_EQ(says({"render", "--backoff-limit", "-1"}),
            "job render: --backoff-limit: '-1' is not a whole number from 0 to 65536\n");
  EXPECT_EQ(says({"render", "--nodes", "4:2"}), "job render: --nodes: 4 is more than 2\n");
  EXPECT_EQ(says({"render", "--env", "A"}), "job render: --env: 'A' is not NAME=VALUE\n");
  EXPECT_EQ(says({"render", "--image"}), "job render: --image needs a value: IMAGE\n");
  EXPECT_EQ(says({"render", "--nodes", "0"}),
            "job render: --nodes: '0' is not a whole number from 1 to 65536\n");
  const std::string job = file("job.yaml", two_ranks);
  EXPECT_EQ(says({"render", "--nodes", "2", job}),
            text("job render: --nodes is for flags alone, and ", job, " says it itself\n"));
  EXPECT_EQ(says({"render", job, "x"}),
            text("job render: 'x' behind ", job, "; options stand before the file\n"));
  EXPECT_EQ(says({"render", "--name", "a", "--image", "i", "--claim", "x", "train"}),
            "job render: --claim: 'x' is not CLAIM:PATH\n");
  EXPECT_EQ(says({"run", "x"}), "job run: name a job file: weft job run --small job.yaml\n");
  EXPECT_EQ(says({"run", "--smal", job}),
            "job run: --smal is not an option, did you mean small; weft help job lists them\n");
  EXPECT_EQ(says({"run", "--small=yes", job}), "job run: --small takes no value\n");
  EXPECT_EQ(says({"run", "--runs=/nowhere"}), "job run: name a job file: weft job run --small job.yaml\n");
}
