#include "weft/jobs/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/jobs/files.h"
#include "tests/support/says.h"

using namespace weft;
using namespace weft::jobs;
using namespace weft::jobs::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

std::vector<Tree> rendered(const std::string& file, const Rendering& how = {}) {
  std::vector<std::string> notices;
  return render(read_job(file, "f"), how, notices);
}

/// "spec.template.spec" of a tree; lists by number.
const Tree& at(const Tree& tree, std::string_view path) {
  if (path.empty()) return tree;
  const auto dot = std::min(path.find('/'), path.size());
  const std::string key(path.substr(0, dot));
  const std::string_view rest = path.substr(std::min(dot + 1, path.size()));
  if (tree.is == Tree::Is::list) return at(tree.items.at(std::size_t(std::stoi(key))), rest);
  const Tree* found = tree.find(key);
  if (found == nullptr) throw std::runtime_error("no " + key);
  return at(*found, rest);
}

std::vector<std::string> words(const Tree& list) {
  std::vector<std::string> out;
  for (const Tree& item : list.items) out.push_back(item.text);
  return out;
}

}  // namespace

TEST(Rendering, is_an_indexed_job_and_a_service_that_finds_its_pods) {
  const auto objects = rendered(plain);
  ASSERT_EQ(objects.size(), 2U);
  const Tree &service = objects[0], &job = objects[1];
  EXPECT_EQ(at(service, "spec/clusterIP").text, "None");
  EXPECT_EQ(at(service, "spec/publishNotReadyAddresses").text, "true");
  EXPECT_EQ(at(service, "spec/selector"), Tree::map({{"weft/job", "gpt"}}));
  EXPECT_EQ(at(job, "spec/completionMode").text, "Indexed");
  EXPECT_EQ(at(job, "spec/template/metadata/labels").find("weft/job")->text, "gpt");
  EXPECT_EQ(at(job, "spec/completions").text, "2");
  EXPECT_EQ(at(job, "spec/parallelism").text, "2");
  EXPECT_EQ(at(job, "spec/template/spec/subdomain").text, "gpt");
  EXPECT_EQ(at(job, "spec/template/spec/restartPolicy").text, "Never");
}

TEST(Rendering, starts_an_agent_in_each_pod) {
  const auto objects = rendered(plain);
  EXPECT_THAT(words(at(objects[1], "spec/template/spec/containers/0/command")),
              ElementsAre("weft", "launch", "--nnodes", "2", "--nproc-per-node", "8", "--master-addr",
                          "gpt-0.gpt", "--master-port", "29500", "--rdzv-id", "gpt", "--max-restarts", "3",
                          "--shutdown-timeout", "55", "Megatron-DeepSpeed/pretrain_gpt.py", "--num-layers=24",
                          "--tensor-model-parallel-size=2", "--pipeline-model-parallel-size=4", "--fp16"));
}

TEST(Rendering, carries_the_pod_over_as_it_is) {
  const auto objects = rendered(plain);
  const Tree& spec = at(objects[1], "spec/template/spec");
  EXPECT_EQ(at(spec, "containers/0/image").text, "trainer:1");
  EXPECT_EQ(at(spec, "containers/0/resources/limits").find("nvidia.com/gpu")->text, "8");
  EXPECT_EQ(at(spec, "containers/0/env/0/value").text, "1");
  EXPECT_TRUE(at(spec, "containers/0/env/0/value").quoted) << "or Kubernetes refuses it";
  EXPECT_EQ(at(spec, "volumes/0/emptyDir/medium").text, "Memory");
  EXPECT_EQ(at(spec, "containers/0/securityContext/capabilities/add/0").text, "IPC_LOCK");
}

TEST(Rendering, ends_the_job_where_another_pod_would_not_help) {
  const auto objects = rendered(plain);
  EXPECT_THAT(words(at(objects[1], "spec/podFailurePolicy/rules/0/onExitCodes/values")),
              ElementsAre("2", "16", "17"));
  const auto others =
      rendered(with(plain, "    replicas: 2\n", "    replicas: 2\n    restartPolicy: OnFailure\n"));
  EXPECT_EQ(at(others[1], "spec").find("podFailurePolicy"), nullptr) << "Kubernetes takes it with Never only";
  EXPECT_EQ(at(others[1], "spec/template/spec/restartPolicy").text, "OnFailure");
}

TEST(Rendering, an_elastic_job_has_pods_for_all_and_goes_on_with_few) {
  const auto objects = rendered(elastic);
  EXPECT_EQ(at(objects[1], "spec/completions").text, "3");
  EXPECT_EQ(at(objects[1], "spec/backoffLimit").text, "10");
  const auto said = words(at(objects[1], "spec/template/spec/containers/0/command"));
  EXPECT_EQ(said.at(3), "1:3");
  EXPECT_EQ(support::says([] { rendered(elastic, {.objects = Objects::mpijob}); }),
            "usage: job: spec.elastic: an MPIJob's ranks are a fixed number; render a Job or a JobSet");
}

TEST(Rendering, a_queue_is_a_label_and_a_priority_a_class) {
  std::vector<std::string> notices;
  const auto objects = render(read_job(plain, "f"), {.priority_class = "high"}, notices);
  EXPECT_EQ(at(objects[1], "metadata/labels").find("kueue.x-k8s.io/queue-name")->text, "default");
  EXPECT_EQ(at(objects[1], "spec/template/spec/priorityClassName").text, "high");
  notices.clear();
  static_cast<void>(render(read_job(plain, "f"), {.image = "i"}, notices));
  EXPECT_THAT(notices.back(), HasSubstr("not carried over: spec.scheduler.t9kScheduler.priority 50"));
}

TEST(Rendering, debugging_waits_in_the_pods) {
  const auto objects = rendered(with(plain, "spec:\n", "spec:\n  runMode: {debug: {enabled: true}}\n"));
  EXPECT_THAT(words(at(objects[1], "spec/template/spec/containers/0/command")), ElementsAre("sleep", "inf"));
  EXPECT_EQ(at(objects[1], "spec/backoffLimit").text, "0");
}

TEST(Rendering, files_travel_as_a_config_map) {
  const auto objects = rendered(plain, {.files = {{"ds.json", "{\"a\": 1}"}}});
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(at(objects[0], "kind").text, "ConfigMap");
  EXPECT_EQ(at(objects[0], "data").find("ds.json")->text, "{\"a\": 1}");
  EXPECT_EQ(at(objects[2], "spec/template/spec/volumes/1/configMap/name").text, "gpt-files");
  EXPECT_EQ(at(objects[2], "spec/template/spec/containers/0/volumeMounts/1/mountPath").text, files_folder);
}

TEST(Rendering, a_job_set_names_its_own_hosts) {
  const auto objects = rendered(plain, {.objects = Objects::jobset});
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_EQ(at(objects[0], "kind").text, "JobSet");
  const Tree& of_a_host = at(objects[0], "spec/replicatedJobs/0/template/spec/template/spec");
  EXPECT_THAT(words(at(of_a_host, "containers/0/command")), ::testing::Contains("gpt-node-0-0.gpt"));
}

TEST(Rendering, an_mpi_job_has_a_launcher_that_computes_nothing) {
  const auto objects = rendered(plain, {.objects = Objects::mpijob});
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_EQ(at(objects[0], "spec/slotsPerWorker").text, "8");
  const Tree& replicas = at(objects[0], "spec/mpiReplicaSpecs");
  EXPECT_EQ(at(replicas, "Worker/replicas").text, "2");
  const Tree& launcher = at(replicas, "Launcher/template/spec/containers/0");
  EXPECT_EQ(at(launcher, "resources").find("limits"), nullptr);
  EXPECT_THAT(words(at(launcher, "command")), ::testing::Contains("/etc/mpi/hostfile"));
}

TEST(Rendering, leaves_the_workers_less_time_than_the_pod_has) {
  const auto objects = rendered(
      with(plain, "        volumes:", "        terminationGracePeriodSeconds: 30\n        volumes:"));
  EXPECT_THAT(words(at(objects[1], "spec/template/spec/containers/0/command")), ::testing::Contains("25"));
  EXPECT_EQ(support::says([] {
              rendered(with(
                  plain, "        volumes:", "        terminationGracePeriodSeconds: 5\n        volumes:"));
            }),
            "usage: job: spec.worker.template.spec.terminationGracePeriodSeconds is '5', and saving needs 10 "
            "s at least");
}
