// Forty steps of each optimizer, as the original took them.
#include "tests/optim/originals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/optim/one_tensor.h"

using namespace weft;
using namespace weft::testing;
using Json = nlohmann::json;

namespace {

OptimizerConfig config_of(const Json& how) {
  OptimizerConfig out;
  if (how["optimizer"] == "Lion") {
    out.kind = OptimizerKind::lion;
    out.lion = {.beta1 = how["betas"][0], .beta2 = how["betas"][1]};
    return out;
  }
  out.kind = OptimizerKind::lamb;
  out.beta1 = how["betas"][0];
  out.beta2 = how["betas"][1];
  out.epsilon = how["eps"];
  out.lamb = {.least = how["min_coeff"],
              .most = how["max_coeff"],
              .bias_correction = how["bias_correction"],
              .epsilon_inside = how["eps_inside_sqrt"]};
  return out;
}

/// Gradients come multiplied by a scale, and are clipped tensor by tensor.
double grad_scale(const Json& how, const std::vector<float>& gradient) {
  if (!how.contains("max_grad_norm") || how["max_grad_norm"] == 0.0) return 1;
  double squares = 0;
  for (const float x : gradient) squares += double(x) * double(x);
  const double clip = (std::sqrt(squares) + 1e-6) / double(how["max_grad_norm"]);
  return 1 / std::max(clip, 1.0);
}

UpdateArgs args_of(const Json& how, const Json& parameter, int step) {
  const double rate = how["lr_varies"] ? how["lrs"][std::size_t(step - 1)] : how["lr"];
  double decay = parameter["wd"];
  if (how.value("decoupled_weight_decay", false)) decay /= double(how["lr"]);
  return {.rate = rate, .ends_rate = rate, .decay = decay};
}

/// Our suffixes of what the original calls so.
const std::map<std::string, std::string> lion_states{{"exp_avg", ".momentum"}};
const std::map<std::string, std::string> lamb_states{{"exp_avg", ".m"}, {"exp_avg_sq", ".v"}};

class Original : public ::testing::TestWithParam<const char*> {};

}  // namespace

// 1 - beta2 = 0.001, formed in f32 by LAMB's original, is off by 1.3e-5 of itself.
TEST_P(Original, takes_the_same_steps) {
  const Json how = settings_of_original(GetParam());
  const Originals set("set_" + std::string(how["set"])), saved(GetParam());
  const auto& states = how["optimizer"] == "Lion" ? lion_states : lamb_states;
  for (const Json& parameter : how["params"]) {
    const std::string name = parameter["name"];
    OneTensor ours(set.shape("init/" + name), set["init/" + name], config_of(how));
    for (int step = 1; step <= 40; ++step) {
      const std::vector<float> g = gradient(set, name, step);
      UpdateArgs args = args_of(how, parameter, step);
      args.grad_scale = grad_scale(how, g);
      ours.step(g, args);
      const Json& at = how["steps_saved"];
      if (std::find(at.begin(), at.end(), step) == at.end()) continue;
      const std::string where = "t" + std::to_string(step) + "/" + name + "/";
      EXPECT_EQ(far_from(ours.weight(), saved[where + "param"], 2e-5), "") << where;
      for (const auto& [theirs, suffix] : states)
        EXPECT_EQ(far_from(ours.state(suffix), saved[where + theirs], 2e-5), "") << where << theirs;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Original,
                         ::testing::Values("lion_A", "lion_A_decoupled", "lamb_A", "lamb_A_nobias",
                                           "lamb_B_scale_clip", "lamb_B_clamped_epsin"),
                         [](const auto& of) { return std::string(of.param); });
