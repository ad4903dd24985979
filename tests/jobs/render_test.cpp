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

TEST(Rendering, words_that_name_a_file_that_travels_name_it_where_it_lies) {
  const std::string file = with(plain, "        - \"--fp16\"\n",
                                "        - \"--deepspeed_config=examples/ds.json\"\n        - in/ds.json\n"
                                "        - \"--note=not-ds.json\"\n");
  std::vector<std::string> notices;
  const auto objects = render(read_job(file, "f"), {.image = "i", .files = {{"ds.json", "{}"}}}, notices);
  const auto said = words(at(objects[2], "spec/template/spec/containers/0/command"));
  EXPECT_THAT(std::vector<std::string>(said.end() - 3, said.end()),
              ElementsAre("--deepspeed_config=/etc/weft/files/ds.json", "/etc/weft/files/ds.json",
                          "--note=not-ds.json"));
  EXPECT_THAT(notices, ::testing::Contains("--deepspeed_config=examples/ds.json travels, and is "
                                           "--deepspeed_config=/etc/weft/files/ds.json in the pods"));
}

TEST(Rendering, a_job_set_names_its_own_hosts) {
  const auto objects = rendered(plain, {.objects = Objects::jobset});
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_EQ(at(objects[0], "kind").text, "JobSet");
  const Tree& of_a_host = at(objects[0], "spec/replicatedJobs/0/template/spec/template/spec");
  EXPECT_THAT(words(at(of_a_host, "containers/0/command")), ::testing::Contains("gpt-node-0-0.gpt"));
}

TEST(Rendering, a_job_set_gives_up_what_its_job_gave_up) {
  const auto objects = rendered(plain, {.objects = Objects::jobset});
  const Tree& policy = at(objects[0], "spec/failurePolicy");
  EXPECT_EQ(at(policy, "maxRestarts").text, "3");
  EXPECT_EQ(at(policy, "rules/0/action").text, "FailJobSet");
  EXPECT_THAT(words(at(policy, "rules/0/onJobFailureReasons")), ElementsAre("PodFailurePolicy"));
  const auto others =
      rendered(with(plain, "    replicas: 2\n", "    replicas: 2\n    restartPolicy: OnFailure\n"),
               {.objects = Objects::jobset});
  EXPECT_EQ(at(others[0], "spec/failurePolicy").find("rules"), nullptr)
      << "its Job has no policy to give up by";
}

TEST(Rendering, the_job_in_a_set_is_found_by_the_label_of_all) {
  for (const Objects objects : {Objects::jobset, Objects::trainjob}) {
    const Tree set = rendered(plain, {.objects = objects})[0];
    const Tree& spec = objects == Objects::jobset ? at(set, "spec") : at(set, "spec/template/spec");
    const Tree& labels = at(spec, "replicatedJobs/0/template/metadata/labels");
    ASSERT_NE(labels.find("weft/job"), nullptr);
    EXPECT_EQ(labels.find("weft/job")->text, "gpt");
  }
}

TEST(Rendering, a_train_job_brings_its_runtime) {
  const auto objects = rendered(elastic, {.objects = Objects::trainjob});
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(at(objects[0], "kind").text, "TrainingRuntime");
  EXPECT_EQ(at(objects[0], "spec/mlPolicy/numNodes").text, "3");
  const Tree& inner = at(objects[0], "spec/template/spec/replicatedJobs/0/template");
  EXPECT_EQ(at(inner, "metadata/labels").find("trainer.kubeflow.org/trainjob-ancestor-step")->text,
            "trainer");
  const Tree& container = at(inner, "spec/template/spec/containers/0");
  EXPECT_EQ(at(container, "name").text, "node") << "the operator looks for it";
  EXPECT_THAT(words(at(container, "command")), ::testing::Contains("grows-node-0-0.grows"));
  EXPECT_EQ(at(objects[1], "kind").text, "TrainJob");
  EXPECT_EQ(at(objects[1], "spec/runtimeRef/name").text, at(objects[0], "metadata/name").text);
  EXPECT_EQ(at(objects[1], "spec/runtimeRef/kind").text, "TrainingRuntime")
      << "else one of the whole cluster";
  const auto two = with(plain, "          - name: worker\n",
                        "          - {name: node, image: i}\n          - name: worker\n");
  EXPECT_EQ(support::says([&] { rendered(two, {.objects = Objects::trainjob}); }),
            "usage: job: spec.worker.template.spec.containers: what works in a TrainJob is called node, and "
            "another container has that name");
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

TEST(Rendering, an_mpi_jobs_workers_hear_ssh_as_the_user_of_the_image) {
  const auto objects = rendered(plain, {.objects = Objects::mpijob});
  const Tree& spec = at(objects[0], "spec");
  EXPECT_EQ(at(spec, "sshAuthMountPath").text, "/etc/weft/ssh");
  const Tree& worker = at(spec, "mpiReplicaSpecs/Worker/template/spec/containers/0");
  EXPECT_THAT(words(at(worker, "command")), ElementsAre("/usr/sbin/sshd", "-De", "-f", "/dev/null", "-p",
                                                        "2222", "-o", "HostKey=/etc/weft/ssh/id_rsa", "-o",
                                                        "AuthorizedKeysFile=/etc/weft/ssh/authorized_keys",
                                                        "-o", "StrictModes=no", "-o", "PidFile=none"));
  const Tree& agent = at(spec, "mpiReplicaSpecs/Launcher/template/spec/containers/0/env/1");
  EXPECT_EQ(at(agent, "name").text, "OMPI_MCA_plm_rsh_agent");
  EXPECT_THAT(at(agent, "value").text, HasSubstr("ssh -p 2222 -i /etc/weft/ssh/id_rsa "));
}

TEST(Rendering, an_mpi_jobs_workers_hear_ssh_as_root_where_the_pod_is_roots) {
  const auto objects = rendered(with(plain, "securityContext: {", "securityContext: {runAsUser: 0, "),
                                {.objects = Objects::mpijob});
  const Tree& spec = at(objects[0], "spec");
  EXPECT_EQ(spec.find("sshAuthMountPath"), nullptr) << "the operator's own is root's";
  EXPECT_THAT(words(at(spec, "mpiReplicaSpecs/Worker/template/spec/containers/0/command")),
              ElementsAre("/usr/sbin/sshd", "-De"));
  EXPECT_EQ(at(spec, "mpiReplicaSpecs/Launcher/template/spec/containers/0/env").items.size(), 1U);
}

TEST(Rendering, an_mpi_jobs_first_container_works) {
  const auto two = with(plain, "          - name: worker\n",
                        "          - {name: beside, image: i}\n          - name: worker\n");
  const Tree replicas = at(rendered(two, {.objects = Objects::mpijob})[0], "spec/mpiReplicaSpecs");
  for (const char* role : {"Launcher", "Worker"}) {
    const Tree& containers = at(replicas, text(role, "/template/spec/containers"));
    EXPECT_EQ(at(containers, "0/name").text, "worker") << "the operator mounts its keys there";
    EXPECT_EQ(at(containers, "1/name").text, "beside");
  }
}

TEST(Rendering, refuses_a_name_that_pods_could_not_bear) {
  const std::string longest(44, 'a');
  const auto named = [&](const std::string& name) {
    return with(with(plain, "name: gpt", "name: " + name), "replicas: 2\n", "replicas: 10001\n");
  };
  for (const Objects objects : {Objects::job, Objects::jobset, Objects::trainjob, Objects::mpijob})
    EXPECT_NO_THROW(rendered(named(longest), {.objects = objects}));
  EXPECT_NO_THROW(rendered(named(longest + "a")));
  EXPECT_EQ(support::says([&] { rendered(named(longest + "a"), {.objects = Objects::jobset}); }),
            text("usage: job: metadata.name: a pod would be called ", longest,
                 "a-node-0-10000-abcde, which has 64 letters, and a cluster takes 63"));
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
