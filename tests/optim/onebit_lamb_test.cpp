// 1-bit LAMB: as the original went, and as a plain loop in double goes that went as the original did.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/optim/plain_signs.h"
#include "tests/optim/workers.h"

using namespace weft;
using namespace weft::testing;
using Json = nlohmann::json;

namespace {

double length(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

struct PlainTensor {
  std::vector<double> w;
  double decay = 0;
  std::vector<double> m = std::vector<double>(w.size()), v = m, fresh = m;
  double ratio = 0, factor = 1, scale = 0;
};

/// Tensors whose momenta travel together, in double; padding is zero in every round.
class PlainLamb {
 public:
  PlainLamb(const OptimizerConfig& how, std::vector<PlainTensor> all, std::size_t workers)
      : tensors(std::move(all)), how_(how), workers_(workers), signs_(workers, elements()) {}

  /// g of each tensor, of each worker.
  void step(const std::vector<WorkerVectors>& g, double rate) {
    ++t_;
    if (t_ < how_.onebit.freeze) {
      for (std::size_t p = 0; p < tensors.size(); ++p) warm_up(tensors[p], mean_of(g[p]), rate);
      return;
    }
    if (t_ == how_.onebit.freeze) begin();
    const std::vector<double> came = travel(g);
    std::size_t at = 0;
    for (PlainTensor& one : tensors) {
      go(one, {came.begin() + std::ptrdiff_t(at), came.begin() + std::ptrdiff_t(at + one.w.size())}, rate);
      at += one.w.size();
    }
  }
  std::vector<PlainTensor> tensors;

 private:
  std::size_t elements() const {
    std::size_t n = 0;
    for (const PlainTensor& one : tensors) n += one.w.size();
    return n;
  }
  void warm_up(PlainTensor& one, const std::vector<double>& g, double rate) const {
    const double b1 = how_.beta1, b2 = how_.beta2, keep = how_.onebit.keep;
    std::vector<double> u;
    for (std::size_t k = 0; k < g.size(); ++k) {
      one.m[k] = b1 * one.m[k] + (1 - b1) * g[k];
      one.v[k] = b2 * one.v[k] + (1 - b2) * g[k] * g[k];
      u.push_back(one.m[k] / (std::sqrt(one.v[k]) + how_.epsilon) + one.decay * one.w[k]);
    }
    const double w = length(one.w), way = length(u);
    const double c = w > 0 && way > 0 ? std::clamp(w / way, how_.lamb.least, how_.lamb.most) : 1;
    if (c != 1) one.ratio = keep * one.ratio + (1 - keep) * c;
    for (std::size_t k = 0; k < g.size(); ++k) one.w[k] -= rate * c * u[k];
  }
  void begin() {
    double mean = 0;
    const auto size = [](const PlainTensor& one) { return length(one.m) / std::sqrt(double(one.m.size())); };
    for (const PlainTensor& one : tensors) mean += size(one) / double(tensors.size());
    for (PlainTensor& one : tensors) {
      one.scale = mean / size(one);
      one.fresh = one.v;
    }
  }
  std::vector<double> travel(const std::vector<WorkerVectors>& g) {
    WorkerVectors all(workers_);
    for (std::size_t i = 0; i < workers_; ++i)
      for (std::size_t p = 0; p < tensors.size(); ++p)
        for (std::size_t k = 0; k < tensors[p].m.size(); ++k)
          all[i].push_back((how_.beta1 * tensors[p].m[k] + (1 - how_.beta1) * g[p][i][k]) * tensors[p].scale);
    return workers_ > 1 ? signs_.reduce(all) : all[0];
  }
  void go(PlainTensor& one, std::vector<double> came, double rate) const {
    const double b1 = how_.beta1, b2 = how_.beta2;
    const OneBitConfig& bits = how_.onebit;
    std::vector<double> pure, u;
    double f = 0;
    for (std::size_t k = 0; k < came.size(); ++k) {
      const double now = one.v[k] == 0 ? 0 : came[k] / one.scale, g = (now - b1 * one.m[k]) / (1 - b1);
      one.m[k] = now;
      one.fresh[k] = b2 * one.fresh[k] + (1 - b2) * g * g;
      const double root = std::sqrt(one.v[k]) + how_.epsilon;
      f = std::max(f, root / (std::sqrt(one.fresh[k]) + how_.epsilon));
      pure.push_back(now / root);
      u.push_back(pure.back() + one.decay * one.w[k]);
    }
    const double share = one.decay > 0 ? std::min(1.0, length(pure) / length(u)) : 1;
    f = std::clamp(f * share + 1 - share, bits.least_factor, bits.most_factor);
    one.factor = f = std::clamp(f, one.factor * (1 - bits.factor_step), one.factor * (1 + bits.factor_step));
    for (std::size_t k = 0; k < came.size(); ++k) one.w[k] -= rate * one.ratio * f * u[k];
  }

  OptimizerConfig how_;
  int t_ = 0;
  std::size_t workers_;
  PlainSigns signs_;
};

std::vector<double> wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

OptimizerConfig config_of(const Json& how) {
  return {.kind = OptimizerKind::onebitlamb,
          .beta1 = how["betas"][0],
          .beta2 = how["betas"][1],
          .epsilon = how["eps"],
          .lamb = {.least = how["min_coeff"], .most = how["max_coeff"]},
          .onebit = {.freeze = how["freeze_step"],
                     .keep = how["coeff_beta"],
                     .least_factor = how["factor_min"],
                     .most_factor = how["factor_max"],
                     .factor_step = how["factor_threshold"]}};
}

PlainLamb plain_of(const Json& how, const Originals& set) {
  std::vector<PlainTensor> all;
  for (const Json& p : how["params"])
    all.push_back({.w = wide(set["init/" + std::string(p["name"])]), .decay = p["wd"]});
  return {config_of(how), all, std::size_t(how["workers"])};
}

std::vector<WorkerVectors> gradients(const Json& how, const Originals& set, int step) {
  std::vector<WorkerVectors> out;
  for (const Json& p : how["params"]) {
    out.emplace_back();
    for (int i = 0; i < int(how["workers"]); ++i)
      out.back().push_back(wide(gradient_of(set, p["name"], step, i)));
  }
  return out;
}

class OneBitLambOriginal : public ::testing::TestWithParam<const char*> {};

}  // namespace

// The plain loop below is held against is itself the original's.
TEST_P(OneBitLambOriginal, takes_the_steps_of_the_plain_loop) {
  const Json how = settings_of_original(GetParam());
  const Originals set("set_" + std::string(how["set"])), saved(GetParam());
  PlainLamb plain = plain_of(how, set);
  for (int step = 1; step <= 40; ++step) {
    plain.step(gradients(how, set, step), rate_of(how, step));
    for (std::size_t p = 0; saved_at(how, step) && p < plain.tensors.size(); ++p) {
      const PlainTensor& one = plain.tensors[p];
      const std::string where = text("t", step, "/", std::string(how["params"][p]["name"]), "/");
      EXPECT_EQ(far_from(one.w, saved[where + "param"], 2e-5), "") << where;
      EXPECT_EQ(far_from(one.m, saved[where + "exp_avg"], 2e-5), "") << where;
      EXPECT_EQ(far_from(one.v, saved[where + "exp_avg_sq"], 2e-5), "") << where;
      EXPECT_NEAR(one.ratio, saved.number(where + "lamb_coeff_freeze"), 2e-5) << where;
      EXPECT_NEAR(one.factor, saved.number(where + "last_factor"), 2e-5) << where;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, OneBitLambOriginal,
                         ::testing::Values("onebit_lamb_A_n1", "onebit_lamb_A_n2_padzero",
                                           "onebit_lamb_A_n4_padzero", "onebit_lamb_B_n4"),
                         [](const auto& of) { return std::string(of.param); });

// Case B decays by one number, so that it can be asked of ours: ranks travel by the names of tensors.
TEST(OneBitLamb, takes_the_originals_steps) {
  const Json how = settings_of_original("onebit_lamb_B_n4");
  const Originals set("set_B"), saved("onebit_lamb_B_n4");
  run_as_threads(4, [&](Communicator& world) {
    std::vector<Worker::One> tensors;
    std::map<std::string, std::string> ours;  // by theirs: their order is that of our names
    for (const Json& p : how["params"]) {
      ours[p["name"]] = text(tensors.size(), std::string(p["name"]));
      tensors.push_back({ours[p["name"]], set.shape("init/" + std::string(p["name"])), p["wd"] > 0.0});
    }
    Worker worker(config_of(how), tensors, world);
    for (const auto& [theirs, name] : ours) worker.begin(name, set["init/" + theirs]);
    for (int step = 1; step <= 40; ++step) {
      for (const auto& [theirs, name] : ours)
        worker.learn(name, gradient_of(set, theirs, step, world.rank()));
      worker.step(rate_of(how, step), 0.02);
      for (const auto& [theirs, name] : ours) {
        if (!saved_at(how, step)) continue;
        const std::string where = text("t", step, "/", theirs, "/");
        EXPECT_EQ(far_from(worker.weight(name), saved[where + "param"], 2e-5), "") << where;
        EXPECT_EQ(far_from(worker.state(name + ".m"), saved[where + "exp_avg"], 2e-5), "") << where;
        EXPECT_NEAR(worker.state(name + ".trust")[0], saved.number(where + "lamb_coeff_freeze"), 2e-5)
            << where;
        EXPECT_NEAR(worker.state(name + ".trust")[1], saved.number(where + "last_factor"), 2e-5) << where;
        EXPECT_TRUE(worker.all_agree(name));
      }
    }
  });
}

// Padding, three workers, an element that never learns, and a tensor that does not decay.
TEST(OneBitLamb, is_the_plain_loop) {
  const std::size_t sizes[] = {45, 13, 20};
  std::vector<PlainTensor> all;
  for (int p = 0; p < 3; ++p) all.push_back({.w = wave(sizes[p], p), .decay = p == 1 ? 0 : 0.1});
  const OptimizerConfig how{.kind = OptimizerKind::onebitlamb, .onebit = {.freeze = 6}};
  PlainLamb plain(how, all, 3);
  const auto gradient = [&](int t, int p, int i) {
    std::vector<double> g = wave(sizes[p], 7 * t + 50 * p + 200 * i);
    if (p == 2) g[3] = 0;
    return g;
  };
  for (int t = 1; t <= 20; ++t) {
    std::vector<WorkerVectors> g;
    for (int p = 0; p < 3; ++p) g.push_back({gradient(t, p, 0), gradient(t, p, 1), gradient(t, p, 2)});
    plain.step(g, 0.01);
  }
  run_as_threads(3, [&](Communicator& world) {
    std::vector<Worker::One> tensors;
    for (int p = 0; p < 3; ++p) tensors.push_back({text(p), {std::int64_t(sizes[p])}, p != 1});
    Worker ours(how, tensors, world);
    for (int p = 0; p < 3; ++p) ours.begin(text(p), floats(wave(sizes[p], p)));
    for (int t = 1; t <= 20; ++t) {
      for (int p = 0; p < 3; ++p) ours.learn(text(p), floats(gradient(t, p, world.rank())));
      ours.step(0.01, 0.1);
    }
    for (int p = 0; p < 3; ++p)
      EXPECT_EQ(difference(ours.weight(text(p)), plain.tensors[std::size_t(p)].w, {1e-4, 1e-5}), "") << p;
  });
}
