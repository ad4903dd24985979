// 0/1 Adam: as the original went, as a plain loop in double goes, and when ranks speak.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/optim/plain_signs.h"
#include "tests/optim/workers.h"
#include "weft/optim/rules/zero_one_adam.h"

using namespace weft;
using namespace weft::testing;
using Json = nlohmann::json;

namespace {

/// 0/1 Adam of one tensor on a few workers, in double.
class PlainZeroOne {
 public:
  PlainZeroOne(const ZeroOneConfig& config, const std::vector<double>& begin, std::size_t workers)
      : config_(config), signs_(workers, begin.size()), w(workers, begin), m(workers, zeros(begin)), u(m) {
    v = zeros(begin);
  }
  void step(const WorkerVectors& g, double rate, double decay) {
    const std::size_t workers = w.size();
    const bool sums = !frozen_ && s_ % variance_interval_ == 0;
    if (frozen_) {
      for (std::size_t i = 0; i < workers; ++i) go(i, g[i], rate, decay, true);
      rates_ += rate;
      if (s_ % local_interval_ == 0) meet();
      if (++local_steps_ == config_.local_steps) {
        local_steps_ = 0;
        local_interval_ = std::min<std::int64_t>(config_.most_local, 2 * local_interval_);
      }
    } else {
      WorkerVectors mean(workers, sums || workers == 1 ? mean_of(g) : masked(signs_.reduce(g)));
      for (std::size_t k = 0; sums && k < v.size(); ++k)
        v[k] = 0.999 * v[k] + 0.001 * mean[0][k] * mean[0][k];
      for (std::size_t i = 0; i < workers; ++i) go(i, mean[i], rate, decay, false);
      if (sums && ++variance_steps_ == config_.variance_steps) {
        variance_steps_ = 0;
        variance_interval_ *= 2;
      }
    }
    if (!frozen_ && s_ > config_.freeze) {
      frozen_ = true;
      signs_ = PlainSigns(workers, v.size());
    }
    ++s_;
  }

 private:
  static std::vector<double> zeros(const std::vector<double>& like) {
    return std::vector<double>(like.size());
  }
  std::vector<double> masked(std::vector<double> x) const {
    for (std::size_t k = 0; k < x.size(); ++k)
      if (v[k] == 0) x[k] = 0;
    return x;
  }
  double root(std::size_t k) const { return std::sqrt(v[k]) + 1e-8; }
  void go(std::size_t i, const std::vector<double>& g, double rate, double decay, bool alone) {
    for (std::size_t k = 0; k < g.size(); ++k) {
      m[i][k] = 0.9 * m[i][k] + 0.1 * g[k];
      const double way = rate * (m[i][k] / root(k) + decay * w[i][k]);
      w[i][k] -= way;
      if (alone) u[i][k] -= way;
    }
  }
  void meet() {
    WorkerVectors told = u;
    for (std::size_t i = 0; i < w.size(); ++i)
      for (std::size_t k = 0; k < v.size(); ++k) {
        w[i][k] -= u[i][k];
        told[i][k] *= root(k);
      }
    const std::vector<double> mean = w.size() > 1 ? masked(signs_.reduce(told)) : told[0];
    for (std::size_t i = 0; i < w.size(); ++i)
      for (std::size_t k = 0; k < v.size(); ++k) {
        m[i][k] = -mean[k] / rates_;
        w[i][k] += mean[k] / root(k);
        u[i][k] = 0;
      }
    rates_ = 0;
  }

  ZeroOneConfig config_;
  PlainSigns signs_;
  std::int64_t s_ = 2, variance_interval_ = 1, variance_steps_ = 0, local_interval_ = 1, local_steps_ = 0;
  double rates_ = 0;
  bool frozen_ = false;

 public:
  WorkerVectors w, m, u;
  std::vector<double> v;
};

ZeroOneConfig config_of(const Json& how) {
  return {.freeze = how["var_freeze_step"],
          .variance_steps = how["var_update_scaler"],
          .local_steps = how["local_step_scaler"],
          .most_local = how["local_step_clipper"]};
}

/// A tensor of a case as one worker trained it.
class Follower {
 public:
  Follower(const std::string& name, const Json& parameter, Communicator& world)
      : how_(settings_of_original(name)),
        set_("set_" + std::string(how_["set"])),
        saved_(name),
        parameter_(parameter),
        name_(parameter["name"]),
        world_(world),
        ours_({.kind = OptimizerKind::zerooneadam,
               .beta1 = how_["betas"][0],
               .beta2 = how_["betas"][1],
               .epsilon = how_["eps"],
               .zeroone = config_of(how_)},
              {{name_, set_.shape("init/" + name_)}}, world),
        schedule_(config_of(how_)) {
    ours_.begin(name_, set_["init/" + name_]);
  }
  /// "" where all steps are the original's.
  std::string follow() {
    for (int step = 1; step <= 40; ++step) {
      if (int(schedule_.learns()) != how_["gradients_reduced"][std::size_t(step - 1)] && world_.size() > 1)
        far_ += text("step ", step, " reads other gradients\n");
      ours_.learn(name_, gradient_of(set_, name_, step, world_.rank()));
      ours_.step(rate_of(how_, step), parameter_["wd"]);
      (void)schedule_.advance();
      if (saved_at(how_, step)) compare_all(text("t", step, "/", name_, "/"));
      if (!schedule_.apart() && !ours_.all_agree(name_)) far_ += text("step ", step, ": weights differ\n");
    }
    return far_;
  }

 private:
  void compare_all(const std::string& where) {
    compare(where, ours_.weight(name_), "param");
    compare(where, ours_.state(name_ + ".v"), "exp_avg_sq");
    const bool apart = schedule_.apart();
    compare(where, ours_.state(name_ + (apart ? ".own_m" : ".m")), "exp_avg");
    if (apart) {
      compare(where, ours_.state(name_ + ".own_steps"), "momentum_accumulator");
      if (std::abs(ours_.state(name_ + ".own_rates")[0] - saved_.number(where + "lrs")) > 1e-8)
        far_ += text(where, "lrs\n");
    }
    count(where, schedule_.variance_interval(), "var_interval");
    count(where, schedule_.local_interval(), "local_step_interval");
  }
  std::string of_mine(const std::string& at) const {
    const std::string mine = text(at, "/worker", world_.rank());
    return saved_.has(mine) ? mine : at;
  }
  void compare(const std::string& where, const std::vector<double>& mine, const std::string& theirs) {
    const std::string one = far_from(mine, saved_[of_mine(where + theirs)], 2e-5);
    if (!one.empty()) far_ += text(where, theirs, ": ", one, "\n");
  }
  void count(const std::string& where, int mine, const std::string& theirs) {
    if (saved_.number(where + theirs) != mine) far_ += text(where, theirs, ": ", mine, "\n");
  }

  Json how_;
  Originals set_, saved_;
  Json parameter_;
  std::string name_;
  Communicator& world_;
  Worker ours_;
  ZeroOneSchedule schedule_;
  std::string far_;
};

class ZeroOneOriginal : public ::testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(ZeroOneOriginal, takes_the_same_steps) {
  const Json how = settings_of_original(GetParam());
  for (const Json& parameter : how["params"])
    run_as_threads(how["workers"], [&](Communicator& world) {
      EXPECT_EQ(Follower(GetParam(), parameter, world).follow(), "");
    });
}

INSTANTIATE_TEST_SUITE_P(Of, ZeroOneOriginal,
                         ::testing::Values("zero_one_adam_A_n1_fixed", "zero_one_adam_A_n2",
                                           "zero_one_adam_B_n4"),
                         [](const auto& of) { return std::string(of.param); });

// Three workers, and elements that are no whole bytes.
TEST(ZeroOneAdam, is_the_plain_loop) {
  const ZeroOneConfig config{.freeze = 12, .variance_steps = 2, .local_steps = 4, .most_local = 4};
  PlainZeroOne plain(config, wave(45, 0), 3);
  std::vector<WorkerVectors> gradients;
  for (int t = 1; t <= 30; ++t) gradients.push_back({wave(45, t), wave(45, 100 + t), wave(45, 200 + t)});
  for (const WorkerVectors& g : gradients) plain.step(g, 0.01, 0.1);
  run_as_threads(3, [&](Communicator& world) {
    Worker ours({.kind = OptimizerKind::zerooneadam, .zeroone = config}, {{"w", {45}}}, world);
    ours.begin("w", floats(wave(45, 0)));
    for (const WorkerVectors& g : gradients) {
      ours.learn("w", floats(g[std::size_t(world.rank())]));
      ours.step(0.01, 0.1);
    }
    EXPECT_EQ(difference(ours.weight("w"), plain.w[std::size_t(world.rank())], {1e-4, 1e-5}), "");
  });
}

TEST(ZeroOneSchedule, is_a_function_of_the_number_of_updates) {
  const ZeroOneConfig config{.freeze = 20, .variance_steps = 3, .local_steps = 5, .most_local = 8};
  ZeroOneSchedule walked(config), sought(config);
  int meetings = 0;
  for (int step = 0; step < 100; ++step) {
    sought.seek(step);
    EXPECT_EQ(sought.learns(), walked.learns()) << step;
    EXPECT_EQ(sought.meets(), walked.meets()) << step;
    EXPECT_EQ(sought.apart(), walked.apart()) << step;
    meetings += walked.meets() ? 1 : 0;
    (void)walked.advance();
  }
  EXPECT_EQ(walked.local_interval(), 8);
  EXPECT_LT(meetings, 25);
}

// A run that goes on from agreed weights and each rank's own steps goes on with its bits.
TEST(ZeroOneAdam, goes_on_between_meetings_with_the_same_bits) {
  const ZeroOneConfig config{.freeze = 2, .variance_steps = 1, .local_steps = 2, .most_local = 8};
  run_as_threads(2, [&](Communicator& world) {
    const OptimizerConfig how{.kind = OptimizerKind::zerooneadam, .zeroone = config};
    Worker first(how, {{"w", {40}}}, world), second(how, {{"w", {40}}}, world);
    first.begin("w", floats(wave(40, 0)));
    const auto step = [&](Worker& worker, int t) {
      worker.learn("w", floats(wave(40, 10 * t + world.rank())));
      worker.step(0.01, 0.1);
    };
    for (int t = 1; t <= 13; ++t) step(first, t);
    ASSERT_FALSE(first.rule().agreed().empty());
    second.begin("w", floats(numbers(first.rule().agreed()[0].slice(0, 0, 40))));
    second.rule().set_updates(first.rule().updates());
    std::map<std::string, Tensor> states;
    first.rule().each_state([&](const Held& held) { states[held.name] = held.memory; });
    second.rule().each_state(
        [&](const Held& held) { copy_to<float>(held.memory, to_host<float>(states.at(held.name))); });
    second.rule().loaded();
    for (int t = 14; t <= 30; ++t) {
      step(first, t);
      step(second, t);
      EXPECT_EQ(first.weight("w"), second.weight("w")) << t;
    }
  });
}
