// Jobs as the objects of operators that many clusters have: a JobSet, a TrainJob over one, an MPIJob.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/jobs/look.h"
#include "weft/jobs/render_parts.h"

namespace weft::jobs {
namespace {

/// Without rules a JobSet starts again whatever failed; what its Job gave up by policy must not be.
Tree set_failure_policy(const Job& job, const Tree& of_job) {
  Tree out = Tree::map({{"maxRestarts", Tree::number(job.debug ? 0 : restarts(job))}});
  if (of_job.find("podFailurePolicy") == nullptr) return out;
  out["rules"] = Tree::list({Tree::map({{"name", "refused"},
                                        {"action", "FailJobSet"},
                                        {"onJobFailureReasons", Tree::list({Tree("PodFailurePolicy")})}})});
  return out;
}

/// A set of one Job, which `weft job status` finds by its label; `labels` are more of them.
Tree set_spec(const Job& job, const Rendering& how, const Tree& labels = {}) {
  Tree inner = Tree::map({{"name", "node"}, {"replicas", Tree::number(1)}});
  inner["template"]["metadata"]["labels"][name_label] = job.name;
  for (const auto& [name, value] : labels.pairs) inner["template"]["metadata"]["labels"][name] = value;
  Tree spec = job_spec(job, how);
  Tree policy = set_failure_policy(job, spec);
  inner["template"]["spec"] = std::move(spec);
  return Tree::map({{"network", Tree::map({{"enableDNSHostnames", Tree::yes(true)},
                                           {"publishNotReadyAddresses", Tree::yes(true)},
                                           {"subdomain", job.name}})},
                    {"failurePolicy", std::move(policy)},
                    {"replicatedJobs", Tree::list({std::move(inner)})}});
}

/// What works in a node's pod is called so by a TrainJob's operator.
void call_it_node(Tree& spec) {
  constexpr const char* node = "node";
  Tree& worker = worker_in(spec);
  for (const Tree& container : spec["containers"].items)
    if (&container != &worker && word_at(container, "name") == node)
      fail(Kind::usage,
           "job: spec.worker.template.spec.containers: what works in a TrainJob is called node, and another "
           "container has that name");
  worker["name"] = node;
}

/// As the file says; where it says nothing, the image's user is meant.
bool runs_as_root(Tree& spec) {
  for (const Tree* at : {static_cast<const Tree*>(&worker_in(spec)), static_cast<const Tree*>(&spec)})
    if (const std::string user = word_at(*at, "securityContext/runAsUser"); !user.empty()) return user == "0";
  return false;
}

/// A user's sshd cannot read the machine's own keys nor hear port 22: it takes the job's key for both sides.
/// That lies in a volume of root's, where strict modes would want the user's own.
struct Ssh {
  static constexpr const char *keys = "/etc/weft/ssh", *port = "2222";
  static std::vector<std::string> daemon(bool root) {
    if (root) return {"/usr/sbin/sshd", "-De"};
    return {"/usr/sbin/sshd",
            "-De",
            "-f",
            "/dev/null",
            "-p",
            port,
            "-o",
            text("HostKey=", keys, "/id_rsa"),
            "-o",
            text("AuthorizedKeysFile=", keys, "/authorized_keys"),
            "-o",
            "StrictModes=no",
            "-o",
            "PidFile=none"};
  }
  static Tree variable() {
    return Tree::map({{"name", "OMPI_MCA_plm_rsh_agent"},
                      {"value", text("ssh -p ", port, " -i ", keys,
                                     "/id_rsa -o StrictHostKeyChecking=no -o "
                                     "UserKnownHostsFile=/dev/null -o LogLevel=ERROR")}});
  }
};

/// Keys and hosts are mounted into a pod's first container.
void put_worker_first(Tree& spec) {
  std::vector<Tree>& all = spec["containers"].items;
  const auto at = all.begin() + (&worker_in(spec) - all.data());
  std::rotate(all.begin(), at, at + 1);
}

Tree launcher_of(const Job& job, const Rendering& how) {
  Tree out = pod_of(job, how, weft_words(job, how));
  const bool root = runs_as_root(out["spec"]);
  Tree& container = worker_in(out["spec"]);
  // It starts what others compute.
  container["resources"] =
      Tree::map({{"requests", Tree::map({{"cpu", Tree::number(1)}, {"memory", "1Gi"}})}});
  if (!root) {
    Tree& variables = container["env"];
    if (variables.is == Tree::Is::none) variables = Tree::list({});
    variables.items.push_back(Ssh::variable());
  }
  return out;
}

}  // namespace

std::vector<Tree> as_jobset(const Job& job, const Rendering& how) {
  Tree object = header("jobset.x-k8s.io/v1alpha2", "JobSet", metadata_of(job, job.name));
  object["spec"] = set_spec(job, how);
  return {std::move(object)};
}

std::vector<Tree> as_trainjob(const Job& job, const Rendering& how) {
  constexpr const char* group = "trainer.kubeflow.org";
  const std::string version = text(group, "/v1alpha1");
  const Tree nodes = Tree::number(most_nodes(job));
  Tree runtime = header(version.c_str(), "TrainingRuntime", metadata_of(job, job.name));
  Tree set = set_spec(job, how, Tree::map({{text(group, "/trainjob-ancestor-step"), "trainer"}}));
  call_it_node(set["replicatedJobs"].items[0]["template"]["spec"]["template"]["spec"]);
  runtime["spec"] = Tree::map(
      {{"mlPolicy", Tree::map({{"numNodes", nodes}})}, {"template", Tree::map({{"spec", std::move(set)}})}});
  Tree object = header(version.c_str(), "TrainJob", metadata_of(job, job.name));
  object["spec"] = Tree::map(
      {{"runtimeRef", Tree::map({{"apiGroup", group}, {"kind", "TrainingRuntime"}, {"name", job.name}})},
       {"trainer", Tree::map({{"numNodes", nodes}})}});
  return {std::move(runtime), std::move(object)};
}

std::vector<Tree> as_mpijob(const Job& job, const Rendering& how) {
  Tree launcher = launcher_of(job, how);
  const bool root = runs_as_root(launcher["spec"]);
  Tree worker = pod_of(job, how, Ssh::daemon(root));
  for (Tree* pod : {&launcher, &worker}) put_worker_first((*pod)["spec"]);
  launcher["spec"].erase("restartPolicy");
  worker["spec"].erase("restartPolicy");
  const Tree policy = job.restarts.empty() ? Tree("Never") : Tree(job.restarts);
  const auto replicas = [&](int count, Tree pod) {
    return Tree::map(
        {{"replicas", Tree::number(count)}, {"restartPolicy", policy}, {"template", std::move(pod)}});
  };
  Tree object = header("kubeflow.org/v2beta1", "MPIJob", metadata_of(job, job.name));
  object["spec"] = Tree::map(
      {{"slotsPerWorker", Tree::number(job.slots)},
       {"mpiImplementation", "OpenMPI"},
       {"launcherCreationPolicy", "WaitForWorkersReady"},
       {"runPolicy",
        Tree::map({{"cleanPodPolicy", "Running"}, {"backoffLimit", Tree::number(job.backoff.value_or(6))}})},
       {"mpiReplicaSpecs", Tree::map({{"Launcher", replicas(1, std::move(launcher))},
                                      {"Worker", replicas(job.nodes, std::move(worker))}})}});
  if (!root) object["spec"]["sshAuthMountPath"] = Ssh::keys;
  return {std::move(object)};
}

}  // namespace weft::jobs
