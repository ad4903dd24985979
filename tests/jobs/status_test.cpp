#include "weft/jobs/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"

using namespace weft;
using namespace weft::jobs;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

std::string pod(const std::string& name, const std::string& phase, const std::string& container,
                const std::string& more = "") {
  return text(R"({"kind": "Pod", "metadata": {"name": ")", name,
              R"("}, "spec": {"nodeName": "node-a"}, "status": {"phase": ")", phase,
              R"(", "containerStatuses": [)", container, "]", more, "}}");
}
std::string running() { return R"({"restartCount": 0, "state": {"running": {}}})"; }
std::string ended(int code, const std::string& at, const std::string& reason = "Error") {
  return text(R"({"restartCount": 0, "state": {"terminated": {"exitCode": )", code, R"(, "reason": ")",
              reason, R"(", "finishedAt": ")", at, R"("}}})");
}
std::string restarted(int code, const std::string& at) {
  return text(
      R"({"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": )",
      code, R"(, "finishedAt": ")", at, R"("}}})");
}
std::string waiting(const std::string& reason) {
  return text(R"({"restartCount": 0, "state": {"waiting": {"reason": ")", reason,
              R"(", "message": "no such image"}}})");
}
std::string job(const std::string& condition) {
  return text(R"({"kind": "Job", "metadata": {"name": "gpt"}, "status": {"conditions": [)", condition, "]}}");
}
const std::string failed =
    R"({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"})";

PodsStatus seen(std::initializer_list<std::string> objects) {
  std::string items;
  for (const std::string& object : objects) items += (items.empty() ? "" : ", ") + object;
  return seen_in(read_yaml(R"({"kind": "List", "items": [)" + items + "]}", "kubectl"));
}

}  // namespace

TEST(JobStatus, is_pending_until_a_pod_works) {
  EXPECT_EQ(told(seen({job("")}), "gpt"), "gpt: Pending: it has no pod yet\n");
  const PodsStatus pull = seen({job(""), pod("gpt-0", "Pending", waiting("ImagePullBackOff"))});
  EXPECT_EQ(pull.state, State::pending);
  EXPECT_EQ(pull.reason, "pod gpt-0: ImagePullBackOff: no such image");
  const PodsStatus full =
      seen({pod("gpt-0", "Pending", "", R"(, "conditions": [{"type": "PodScheduled", "status": "False",
      "reason": "Unschedulable", "message": "0/3 nodes are available"}])")});
  EXPECT_EQ(full.reason, "pod gpt-0: Unschedulable: 0/3 nodes are available");
  const PodsStatus queued =
      seen({job(R"({"type": "Suspended", "status": "True", "reason": "JobSuspended"})")});
  EXPECT_EQ(queued.state, State::pending);
  EXPECT_EQ(queued.reason, "JobSuspended");
}

TEST(JobStatus, is_running_while_a_pod_works_and_tells_each) {
  EXPECT_EQ(
      told(seen({pod("gpt-10", "Pending", waiting("ContainerCreating")), pod("gpt-0", "Running", running())}),
           "gpt"),
      "gpt: Running\n"
      "  gpt-0   Running    node-a  restarts 0\n"
      "  gpt-10  Pending    node-a  restarts 0  ContainerCreating: no such image\n");
}

TEST(JobStatus, succeeds_with_its_job_or_with_all_pods) {
  EXPECT_EQ(
      seen({job(R"({"type": "Complete", "status": "True"})"), pod("gpt-0", "Running", running())}).state,
      State::succeeded);
  EXPECT_EQ(seen({pod("l", "Succeeded", ended(0, "2026-01-01T00:00:00Z"))}).state, State::succeeded);
}

TEST(JobStatus, is_an_error_of_the_pod_that_failed_first) {
  const PodsStatus out = seen({job(failed), pod("gpt-0", "Failed", ended(143, "2026-01-01T00:00:09Z")),
                               pod("gpt-1", "Failed", ended(137, "2026-01-01T00:00:03Z", "OOMKilled"))});
  EXPECT_EQ(out.state, State::error);
  EXPECT_EQ(out.failed, 1);
  EXPECT_EQ(
      out.reason,
      "pod gpt-1: exit code 137: killed, for memory perhaps (OOMKilled) (BackoffLimitExceeded: too often)");
  EXPECT_EQ(seen({pod("l", "Failed", ended(2, "2026-01-01T00:00:03Z"))}).reason,
            "pod l: exit code 2: a mistake in the flags");
}

TEST(JobStatus, of_an_mpi_job_is_its_launchers) {
  const auto launcher = [](const std::string& phase, const std::string& container) {
    const std::string plain = pod("gpt-launcher-x", phase, container);
    const std::string name = R"("name": "gpt-launcher-x")";
    return std::string(plain).replace(plain.find(name), name.size(),
                                      name + R"(, "labels": {"training.kubeflow.org/job-role": "launcher"})");
  };
  const std::string worker = pod("gpt-worker-0", "Running", running());
  const std::string before = pod("gpt-launcher-a", "Failed", ended(1, "2026-01-01T00:00:03Z"));
  EXPECT_EQ(seen({before, launcher("Pending", ""), worker}).state, State::running) << "it is tried again";
  EXPECT_EQ(seen({before, launcher("Pending", "")}).state, State::pending);
  EXPECT_EQ(seen({before, launcher("Succeeded", ended(0, "2026-01-01T00:00:09Z"))}).state, State::succeeded);
  EXPECT_EQ(seen({before, launcher("Failed", ended(1, "2026-01-01T00:00:09Z"))}).state, State::error);
}

TEST(JobStatus, knows_why_a_pod_that_was_started_again_had_failed) {
  const PodsStatus out = seen({job(""), pod("gpt-0", "Running", restarted(1, "2026-01-01T00:00:03Z"))});
  EXPECT_EQ(out.state, State::running);
  ASSERT_EQ(out.failed, 0);
  EXPECT_TRUE(out.pods[0].again);
  EXPECT_EQ(out.pods[0].restarts, 2);
  EXPECT_EQ(out.pods[0].reason, "exit code 1; CrashLoopBackOff");
}

TEST(JobStatus, knows_of_pods_that_were_driven_out) {
  const PodsStatus out = seen(
      {job(failed), pod("gpt-0", "Failed", "", R"(, "reason": "Evicted", "message": "the node is full")")});
  EXPECT_THAT(out.reason, HasSubstr("pod gpt-0: Evicted: the node is full"));
  EXPECT_EQ(out.failed, 0);
}

TEST(JobStatus, refuses_what_is_no_list) {
  EXPECT_THAT([] { static_cast<void>(seen_in(read_yaml("a: 1", "kubectl"))); },
              ThrowsMessage<Error>("kubectl: what it said is no list of objects"));
}

TEST(JobEvents, are_those_of_the_job_and_its_pods_the_oldest_first) {
  const auto event = [](const std::string& who, const std::string& at) {
    return text(
        R"({"type": "Warning", "reason": "BackOff", "message": "again", "involvedObject": {"name": ")", who,
        R"("}, "lastTimestamp": ")", at, R"("})");
  };
  EXPECT_EQ(
      events_told(
          read_yaml(text(R"({"items": [)", event("gpt-1", "2026-01-01T00:00:09Z"), ", ",
                         event("gpt", "2026-01-01T00:00:01Z"), ", ", event("gpts", "2026-01-01T00:00:01Z"),
                         R"(, {"type": "Normal", "involvedObject": {"name": "gpt-2"}, "lastTimestamp": null,
                                       "eventTime": "2026-01-01T00:00:05Z", "reason": "Pulled", "message": "m"}]})"),
                    "kubectl"),
          "gpt"),
      "2026-01-01T00:00:01Z  Warning  BackOff  gpt  again\n"
      "2026-01-01T00:00:05Z  Normal  Pulled  gpt-2  m\n"
      "2026-01-01T00:00:09Z  Warning  BackOff  gpt-1  again\n");
}

TEST(JobResources, are_added_up) {
  const std::string pod_of =
      R"("spec": {"containers": [{"resources": {"requests": {"cpu": "1500m", "memory": "8Gi",
      "nvidia.com/gpu": 1}, "limits": {"cpu": 2, "memory": "16Gi"}}}, {"resources": {"requests": {"cpu": "500m"}}}]})";
  EXPECT_EQ(
      resources_told(read_yaml(text(R"({"items": [{"kind": "Pod", "metadata": {"name": "gpt-0"}, )", pod_of,
                                    R"(}, {"kind": "Pod", "metadata": {"name": "gpt-1"}, )", pod_of, "}]}"),
                               "kubectl")),
      "  gpt-0  asks for cpu 2, memory 8.0 GiB, nvidia.com/gpu 1; may have cpu 2, memory 16.0 GiB\n"
      "  gpt-1  asks for cpu 2, memory 8.0 GiB, nvidia.com/gpu 1; may have cpu 2, memory 16.0 GiB\n"
      "  all  asks for cpu 4, memory 16.0 GiB, nvidia.com/gpu 2; may have cpu 4, memory 32.0 GiB\n");
}
