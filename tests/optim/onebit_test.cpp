// Messages of one bit an element, and Adam that speaks in them.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/optim/workers.h"
#include "weft/optim/sign_reduction.h"

using namespace weft;
using namespace weft::testing;
using Json = nlohmann::json;

namespace {

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

std::string follow_worker(const std::string& name, const Json& how, const Json& parameter,
                          Communicator& world) {
  const Originals set("set_" + std::string(how["set"])), saved(name);
  const std::string p = parameter["name"];
  Worker ours({.kind = OptimizerKind::onebitadam,
               .beta1 = how["betas"][0],
               .beta2 = how["betas"][1],
               .epsilon = how["eps"],
               .onebit = {.freeze = how["freeze_step"]}},
              {{p, set.shape("init/" + p)}}, world);
  ours.begin(p, set["init/" + p]);
  std::string far;
  for (int step = 1; step <= 40; ++step) {
    ours.learn(p, gradient_of(set, p, step, world.rank()));
    ours.step(rate_of(how, step), parameter["wd"]);
    if (!saved_at(how, step)) continue;
    const std::string where = text("t", step, "/", p, "/");
    const auto compare = [&](const std::vector<double>& mine, const std::string& theirs) {
      const std::string one = far_from(mine, saved[where + theirs], 2e-5);
      if (!one.empty()) far += text(where, theirs, ": ", one, "\n");
    };
    compare(ours.weight(p), "param");
    compare(ours.state(p + ".m"), "exp_avg");
    compare(ours.state(p + ".v"), "exp_avg_sq");
  }
  if (!ours.all_agree(p)) far += "workers hold other weights than the first";
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
