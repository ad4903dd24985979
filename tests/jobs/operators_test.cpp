// What operators take, by lists of our own: no schema of theirs is published with Kubernetes'.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/jobs/files.h"
#include "weft/base/format.h"
#include "weft/jobs/look.h"
#include "weft/jobs/render.h"

using namespace weft;
using namespace weft::jobs;
using namespace weft::jobs::testing;

namespace {

/// A field's path to what it holds: "number", "flag", "text", words with bars between, or "*" for what is
/// Kubernetes' own. What begins with "!" must be there.
using Fields = std::map<std::string, std::string>;

Fields under(const std::string& path, const Fields& fields) {
  Fields out;
  for (const auto& [name, holds] : fields) out[path + name] = holds;
  return out;
}

const Fields& set_fields() {
  static const Fields fields{
      {".network.enableDNSHostnames", "flag"},
      {".network.publishNotReadyAddresses", "flag"},
      {".network.subdomain", "text"},
      {".failurePolicy.maxRestarts", "number"},
      {".failurePolicy.rules[].name", "text"},
      {".failurePolicy.rules[].action",
       "!FailJobSet|RestartJobSet|RestartJobSetAndIgnoreMaxRestarts|RestartJob|"
       "RestartJobAndIgnoreMaxRestarts"},
      {".failurePolicy.rules[].onJobFailureReasons[]",
       "BackoffLimitExceeded|DeadlineExceeded|FailedIndexes|MaxFailedIndexesExceeded|PodFailurePolicy"},
      {".replicatedJobs[].name", "!text"},
      {".replicatedJobs[].replicas", "number"},
      {".replicatedJobs[].template.metadata", "*"},
      {".replicatedJobs[].template.spec", "!*"}};
  return fields;
}

Fields fields_of(const std::string& kind) {
  if (kind == "JobSet") return under("spec", set_fields());
  if (kind == "TrainingRuntime") {
    Fields out = under("spec.template.spec", set_fields());
    out["spec.mlPolicy.numNodes"] = "number";
    return out;
  }
  if (kind == "TrainJob")
    return {{"spec.runtimeRef.name", "!text"},
            {"spec.runtimeRef.apiGroup", "text"},
            {"spec.runtimeRef.kind", "text"},
            {"spec.trainer.numNodes", "number"}};
  Fields out{{"spec.slotsPerWorker", "number"},
             {"spec.runPolicy.cleanPodPolicy", "None|Running|All"},
             {"spec.runPolicy.backoffLimit", "number"},
             {"spec.sshAuthMountPath", "text"},
             {"spec.launcherCreationPolicy", "AtStartup|WaitForWorkersReady"},
             {"spec.mpiImplementation", "OpenMPI|Intel|MPICH"}};
  for (const char* role : {"Launcher", "Worker"})
    out.merge(under(text("spec.mpiReplicaSpecs.", role),
                    {{".replicas", "!number"}, {".restartPolicy", "Never|OnFailure"}, {".template", "!*"}}));
  return out;
}

bool holds(const Tree& tree, const std::string& what) {
  if (what == "*") return tree.is == Tree::Is::map;
  if (tree.is != Tree::Is::word) return false;
  if (what == "text") return tree.quoted;
  if (what == "flag") return !tree.quoted && (tree.text == "true" || tree.text == "false");
  if (what == "number") return !tree.quoted && tree.text.find_first_not_of("0123456789") == std::string::npos;
  const auto words = split(what, '|');
  return tree.quoted && std::ranges::find(words, tree.text) != words.end();
}

void look(const Tree& tree, const std::string& path, const Fields& fields, std::set<std::string>& seen,
          std::vector<std::string>& wrong) {
  const auto known = fields.find(path);
  if (known != fields.end()) {
    seen.insert(path);
    const std::string& what = known->second;
    if (!holds(tree, what.starts_with('!') ? what.substr(1) : what))
      wrong.push_back(path + " holds no " + what);
  } else if (tree.is == Tree::Is::map) {
    for (const auto& [name, value] : tree.pairs) look(value, text(path, ".", name), fields, seen, wrong);
  } else if (tree.is == Tree::Is::list) {
    for (const Tree& item : tree.items) look(item, path + "[]", fields, seen, wrong);
  } else {
    wrong.push_back(path + " is no field");
  }
}

std::vector<std::string> mistakes(const Tree& object) {
  const std::string kind = word_at(object, "kind");
  const Fields fields = fields_of(kind);
  std::set<std::string> seen;
  std::vector<std::string> wrong;
  look(*object.find("spec"), "spec", fields, seen, wrong);
  for (const auto& [path, what] : fields) {
    const bool within = path.find("rules[]") != std::string::npos;  // of a list that may be empty
    if (what.starts_with('!') && !within && !seen.contains(path)) wrong.push_back(path + " is missing");
  }
  return wrong;
}

}  // namespace

TEST(Operators, take_every_field_that_is_rendered) {
  const std::string debugged = with(plain, "spec:\n", "spec:\n  runMode: {debug: {enabled: true}}\n");
  const std::string again =
      with(plain, "    replicas: 2\n", "    replicas: 2\n    restartPolicy: OnFailure\n");
  for (const std::string& file : {plain, elastic, debugged, again})
    for (const Objects objects : {Objects::jobset, Objects::trainjob, Objects::mpijob}) {
      if (objects == Objects::mpijob && file == elastic) continue;
      std::vector<std::string> notices;
      for (const Tree& object : render(read_job(file, "f"), {.objects = objects}, notices))
        EXPECT_THAT(mistakes(object), ::testing::IsEmpty()) << word_at(object, "kind");
    }
}

TEST(Operators, would_not_take_others) {
  std::vector<std::string> notices;
  Tree set = render(read_job(plain, "f"), {.objects = Objects::jobset}, notices)[0];
  set["spec"]["failurePolicy"]["restarts"] = Tree::number(3);
  set["spec"]["network"]["enableDNSHostnames"] = "true";
  set["spec"]["replicatedJobs"].items[0].erase("name");
  EXPECT_THAT(mistakes(set), ::testing::ElementsAre("spec.network.enableDNSHostnames holds no flag",
                                                    "spec.failurePolicy.restarts is no field",
                                                    "spec.replicatedJobs[].name is missing"));
}
