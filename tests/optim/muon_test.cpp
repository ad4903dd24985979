// Muon: orthogonal directions, Megatron's forty steps, ranks that hold parts of a matrix.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "tests/optim/originals.h"
#include "weft/backend/open.h"
#include "weft/comm/solo.h"
#include "weft/comm/threads.h"
#include "weft/optim/orthogonal.h"
#include "weft/optim/rules.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::testing;
using Json = nlohmann::json;

namespace {

template <class E>
E worded(const std::string& word) {
  const auto all = words(E());
  return E(std::find(all.begin(), all.end(), word) - all.begin());
}

OptimizerConfig muon_of(const Json& how) {
  OptimizerConfig out{.kind = OptimizerKind::muon};
  out.decoupled_decay = how["weight_decay_method"] == "decoupled";
  out.muon = {.momentum = how["momentum"],
              .nesterov = how["nesterov"],
              .split_qkv = !how["qkv_split_shapes"].is_null(),
              .scale = worded<MuonScale>(how["scale_mode"]),
              .extra_scale = how["extra_scale_factor"],
              .ranks = worded<MuonRanks>(how["tp_mode"]),
              .precision = worded<MuonPrecision>(how["fp32_matmul_prec"]),
              .rounds = worded<MuonSteps>(how["coefficient_type"]),
              .steps = how["ns_steps"]};
  return out;
}

/// Rows or columns of a matrix that a rank holds.
struct Part {
  Shape whole;
  int dim, rank, ranks;

  template <class T>
  std::vector<T> of(const std::vector<T>& all) const {
    std::vector<T> out;
    for (std::int64_t i = 0; i < whole.elements(); ++i) {
      const std::int64_t at = dim == 0 ? i / whole[1] : i % whole[1];
      if (at * ranks / whole[dim] == rank) out.push_back(all[std::size_t(i)]);
    }
    return out;
  }
};

/// One matrix of a case on one rank.
class MatrixRank {
 public:
  MatrixRank(const Json& how, const Part& part, const ProcessMesh& mesh, std::int64_t bands)
      : parameter_(part.dim == 0 ? row_parameter("w", part.whole, {}, along(part))
                                 : column_parameter("w", part.whole, {}, along(part))) {
    if (!how["qkv_split_shapes"].is_null())
      for (const std::int64_t rows : how["qkv_split_shapes"]) parameter_.bands.push_back(rows * bands);
    weights_.emplace([this](const VisitParameter& visit) { visit(parameter_); }, *device_, Dtype::f32,
                     Weights::For::training, DataParallel{.mesh = &mesh});
    rule_ = make_optimizer(*weights_, muon_of(how));
  }
  void begin(const std::vector<float>& values) { copy_to<float>(parameter_.value, values); }
  void step(const std::vector<float>& gradient, double rate, double decay) {
    copy_to<float>(parameter_.grad.sum(), gradient);
    rule_->update({.rate = rate, .ends_rate = rate, .decay = decay});
  }
  std::vector<double> weight() const { return numbers(parameter_.value); }
  std::vector<double> momentum() const {
    std::vector<double> out;
    rule_->each_state(
        [&](const Held& held) { out = numbers(held.memory.slice(0, 0, parameter_.shape.elements())); });
    return out;
  }

 private:
  static Along along(const Part& part) { return {Axis::tp, part.rank, part.ranks}; }
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  Parameter parameter_;
  std::optional<Weights> weights_;
  std::unique_ptr<Optimizer> rule_;
};

/// What differs from the original, "" if nothing does.
std::string follow(const std::string& name, const Json& parameter, const ProcessMesh& mesh) {
  const Json how = settings_of_original(name);
  const Originals set("set_M"), saved(name);
  const std::string p = parameter["name"];
  const int dim = how["partition_dim"].is_null() ? 0 : int(how["partition_dim"]);
  const Part part{set.shape("init/" + p), dim, mesh.place(Axis::tp), mesh.layout().degree(Axis::tp)};
  MatrixRank ours(how, part, mesh, 1);
  ours.begin(part.of(set["init/" + p]));
  // bf16 products of equal algorithms part by up to 6e-3 of a direction.
  const double within = how["fp32_matmul_prec"] == "medium" ? 1e-2 : 1e-5;
  for (int step = 1; step <= 40; ++step) {
    const double rate = how["lr_varies"] ? how["lrs"][std::size_t(step - 1)] : how["lr"];
    ours.step(part.of(gradient(set, p, step)), rate, parameter["wd"]);
    const Json& at = how["steps_saved"];
    if (std::find(at.begin(), at.end(), step) == at.end()) continue;
    const std::string where = text("t", step, "/", p, "/");
    std::string far = far_from(ours.weight(), part.of(saved[where + "param"]), within);
    far += far_from(ours.momentum(), part.of(saved[where + "momentum_buffer"]), 1e-5);
    if (!far.empty()) return text(where, ": ", far);
  }
  return {};
}

class MuonOriginal : public ::testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(MuonOriginal, takes_the_same_steps) {
  const Json how = settings_of_original(GetParam());
  const int ranks = how["tp"];
  for (const Json& parameter : how["params"])
    run_as_threads(ranks, [&](Communicator& world) {
      const ProcessMesh mesh(ParallelLayout({.tp = ranks, .dp = 1}), world);
      EXPECT_EQ(follow(GetParam(), parameter, mesh), "");
    });
}

INSTANTIATE_TEST_SUITE_P(
    Of, MuonOriginal,
    ::testing::Values("muon_meg_f32_spectral", "muon_meg_f32_nesterov_shape", "muon_meg_f32_simple_unit_l2",
                      "muon_meg_f32_qkv", "muon_meg_bf16_spectral", "muon_meg_f32_tp2_blockwise_dim0",
                      "muon_meg_f32_tp2_blockwise_dim1", "muon_meg_f32_tp2_duplicated_dim0",
                      "muon_meg_f32_tp2_duplicated_dim1", "muon_meg_f32_tp2_distributed_dim0",
                      "muon_meg_f32_tp2_distributed_dim1"),
    [](const auto& of) { return std::string(of.param); });

// The steps leave singular values between 0.7 and 1.2, wherever they began.
TEST(Orthogonalize, brings_every_direction_to_about_one_length) {
  const auto device = open_device("cpu", {.threads = 1});
  const Tensor x = empty(*device, {3, 5}, Dtype::f32);
  copy_to<float>(x, std::vector<float>{9, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, -1});
  orthogonalize(x, {.dtype = Dtype::f32}, 2);
  const std::vector<double> out = numbers(x);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double expected = i == 0 || i == 7 ? 2 : i == 14 ? -2 : 0;
    EXPECT_NEAR(out[i], expected, expected == 0 ? 1e-6 : 0.6) << i;
  }
}

TEST(Orthogonalize, leaves_zero_at_zero) {
  const auto device = open_device("cpu", {.threads = 1});
  const Tensor x = empty(*device, {4, 4}, Dtype::f32);
  copy_to<float>(x, std::vector<float>(16));
  orthogonalize(x, {}, 1);
  for (const double value : numbers(x)) EXPECT_EQ(value, 0);
}
