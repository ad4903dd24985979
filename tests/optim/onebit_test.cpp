// Messages of one bit an element, and Adam that speaks in them.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <optional>

#include "tests/optim/originals.h"
#include "tests/support/numbers.h"
#include "weft/backend/open.h"
#include "weft/comm/threads.h"
#include "weft/optim/rules.h"
#include "weft/optim/sign_reduction.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::testing;
using Json = nlohmann::json;

namespace {

/// One of the first dimension's.
std::vector<float> part(const std::vector<float>& all, std::int64_t which, std::int64_t of) {
  const auto each = std::int64_t(all.size()) / of;
  return {all.begin() + which * each, all.begin() + (which + 1) * each};
}

/// Three rounds of a case, as rank `world.rank()`; "" where they are the original's.
std::string follow_rounds(const Originals& saved, const std::string& name, Communicator& world) {
  const auto device = open_device("cpu", {.threads = 1});
  const int n = world.size(), rank = world.rank();
  const std::int64_t elements = saved.shape(name + "/x")[2];
  SignReduction signs(*device, world, std::array{elements});
  std::string far;
  for (int round = 0; round < 3; ++round) {
    const auto at = [&](const std::string& what) { return part(saved[name + "/" + what], round, 3); };
    const Tensor x = from_host(*device, {elements}, part(at("x"), rank, n));
    signs.reduce(std::array{x});
    const std::vector<float> result = at("result");
    double most = 0;  // errors may be nothing but rounding
    for (const float value : result) most = std::max(most, std::abs(double(value)));
    const auto compare = [&](const Tensor& ours, const std::vector<float>& theirs) {
      far += difference(numbers(ours), std::vector<double>(theirs.begin(), theirs.end()), {0, 1e-5 * most});
    };
    compare(x, result);
    compare(signs.worker_errors()[0], part(at("worker_error"), rank, n));
    compare(signs.server_errors()[0], part(at("server_error"), rank, n));
  }
  return far;
}

}  // namespace

TEST(SignReduction, of_one_tensor_has_the_originals_means_and_errors) {
  const Originals saved("compressed_allreduce");
  const Json cases = settings_of_original("compressed_allreduce")["cases"];
  for (const Json& one : cases) {
    const std::string name = one["tag"];
    run_as_threads(one["workers"], [&](Communicator& world) {
      EXPECT_EQ(follow_rounds(saved, name, world), "") << name << " on rank " << world.rank();
    });
  }
}

// 32 bits become one, and one size a tensor and rank: an all-reduce in f32 sends 2 (n - 1) / n of its bytes.
TEST(SignReduction, sends_less_than_a_twentyfifth_of_the_bytes) {
  for (const int ranks : {2, 4})
    run_as_threads(ranks, [&](Communicator& world) {
      const auto device = open_device("cpu", {.threads = 1});
      const std::array<std::int64_t, 3> lengths{48 * 16, 16 * 16, 1000};
      SignReduction signs(*device, world, lengths);
      std::vector<Tensor> x;
      std::int64_t elements = 0;
      for (const std::int64_t n : lengths) {
        x.push_back(from_host(*device, {n}, std::vector<float>(std::size_t(n), 1.F)));
        elements += n;
      }
      signs.reduce(x);
      const double in_f32 = 2.0 * (ranks - 1) / ranks * 4 * double(elements);
      EXPECT_LT(double(signs.bytes_sent()), in_f32 / 25) << ranks;
      EXPECT_EQ(numbers(x[2]).back(), numbers(x[2]).front());
    });
}

// What one round leaves out the next ones bring.
TEST(SignReduction, brings_in_many_rounds_what_was_asked_for) {
  run_as_threads(2, [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    SignReduction signs(*device, world, std::array<std::int64_t, 1>{16});
    std::vector<double> sum(16);
    for (int round = 0; round < 200; ++round) {
      std::vector<float> mine(16);
      for (std::size_t i = 0; i < 16; ++i) mine[i] = float(i) - 5 + float(world.rank());
      const Tensor x = from_host(*device, {16}, mine);
      signs.reduce(std::array{x});
      const std::vector<double> got = numbers(x);
      for (std::size_t i = 0; i < 16; ++i) sum[i] += got[i] / 200;
    }
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(sum[i], double(i) - 4.5, 0.3) << i;
  });
}

namespace {

/// A case's parameter on one worker.
class Worker {
 public:
  Worker(const Json& how, const Shape& shape, const ProcessMesh& mesh)
      : mesh_(mesh), parameter_(whole_parameter("w", shape, {})) {
    parameter_.decays = true;
    weights_.emplace([this](const VisitParameter& visit) { visit(parameter_); }, *device_, Dtype::f32,
                     Weights::For::training, DataParallel{.mesh = &mesh});
    rule_ = make_optimizer(*weights_, {.kind = OptimizerKind::onebitadam,
                                       .beta1 = how["betas"][0],
                                       .beta2 = how["betas"][1],
                                       .epsilon = how["eps"],
                                       .onebit = {.freeze = how["freeze_step"]}});
  }
  void begin(const std::vector<float>& values) { copy_to<float>(parameter_.value, values); }
  /// The gradient is a term of a sum here, of a mean there.
  void step(const std::vector<float>& gradient, double rate, double decay) {
    const Tensor sum = parameter_.grad.sum();
    copy_to<float>(sum, gradient);
    const int workers = mesh_.layout().degree(Axis::dp);
    if (rule_->wants_sums()) mesh_.along({Axis::dp, Axis::cp}).all_reduce(sum, Reduce::sum).wait();
    rule_->update({.rate = rate, .ends_rate = rate, .decay = decay, .grad_scale = 1.0 / workers});
  }
  std::vector<double> state(const std::string& suffix) const {
    std::vector<double> out;
    rule_->each_state([&](const Held& held) {
      if (held.name == "w" + suffix) out = numbers(held.memory);
    });
    if (out.size() > std::size_t(parameter_.shape.elements()) && suffix.size() < 3)
      out.resize(std::size_t(parameter_.shape.elements()));
    return out;
  }
  std::vector<double> weight() const { return numbers(parameter_.value); }

 private:
  const ProcessMesh& mesh_;
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  Parameter parameter_;
  std::optional<Weights> weights_;
  std::unique_ptr<Optimizer> rule_;
};

/// Whether all ranks hold the bits of the first.
bool all_agree(const std::vector<double>& mine, Device& device, Communicator& world) {
  const Tensor first = from_host(device, {std::int64_t(mine.size())}, mine);
  world.broadcast(first, 0).wait();
  return numbers(first) == mine;
}

std::string follow_worker(const std::string& name, const Json& how, const Json& parameter,
                          Communicator& world) {
  const ProcessMesh mesh(ParallelLayout({.dp = world.size()}), world);
  const Originals set("set_" + std::string(how["set"])), saved(name);
  const std::string p = parameter["name"];
  Worker ours(how, set.shape("init/" + p), mesh);
  ours.begin(set["init/" + p]);
  const Shape all = set.shape("grad/" + p);
  std::string far;
  for (int step = 1; step <= 40; ++step) {
    const auto gradient = part(part(set["grad/" + p], step - 1, 40), world.rank(), all[1]);
    const double rate = how["lr_varies"] ? how["lrs"][std::size_t(step - 1)] : how["lr"];
    ours.step(gradient, rate, parameter["wd"]);
    const Json& at = how["steps_saved"];
    if (std::find(at.begin(), at.end(), step) == at.end()) continue;
    const std::string where = text("t", step, "/", p, "/");
    const auto compare = [&](const std::vector<double>& mine, const std::string& theirs) {
      const std::string one = far_from(mine, saved[where + theirs], 2e-5);
      if (!one.empty()) far += text(where, theirs, ": ", one, "\n");
    };
    compare(ours.weight(), "param");
    compare(ours.state(".m"), "exp_avg");
    compare(ours.state(".v"), "exp_avg_sq");
  }
  const auto device = open_device("cpu", {.threads = 1});
  if (!all_agree(ours.weight(), *device, world)) far += "workers hold other weights than the first";
  return far;
}

class OneBitOriginal : public ::testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(OneBitOriginal, takes_the_same_steps) {
  const Json how = settings_of_original(GetParam());
  for (const Json& parameter : how["params"])
    run_as_threads(how["workers"], [&](Communicator& world) {
      EXPECT_EQ(follow_worker(GetParam(), how, parameter, world), "");
    });
}

INSTANTIATE_TEST_SUITE_P(Of, OneBitOriginal,
                         ::testing::Values("onebit_adam_A_n1", "onebit_adam_A_n2", "onebit_adam_A_n4",
                                           "onebit_adam_B_n4"),
                         [](const auto& of) { return std::string(of.param); });
