// A replica goes by its family's value, and keeps what it is when runners change.
#include "weft/train/replica.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/counting.h"
#include "tests/support/refused.h"
#include "tests/support/tiny.h"
#include "weft/comm/solo.h"

using namespace weft;
using namespace weft::testing;

namespace {

class Alone {
 public:
  explicit Alone(const ReplicaConfig& config, const VisitParameter& before = {})
      : replica(config, {*device, mesh}, before) {}
  StepReport step(std::size_t microbatches) {
    const std::vector<Batch> batches(microbatches, tiny_batch(*device, tiny_gpt2(), 2));
    return replica.step(batches, {.seed = 3, .step = 1, .rate = 1e-3, .ends_rate = 1e-3, .clip = 1});
  }
  std::unique_ptr<Device> device = open_device("cpu", {.threads = 1});
  SoloCommunicator solo;
  ProcessMesh mesh{ParallelLayout({}), solo};
  Replica replica;
};

/// GPT's blocks without those of the second layer.
Stage half_a_model(const ModelConfig& config, const StagePart&, const Circles& circles, Device& device) {
  return kind_named("gpt").build(config, {.first_layer = 0, .layers = 1}, circles, device);
}

ModelConfig twice_as_wide(ModelConfig config = tiny_gpt2()) {
  config.mup = {.on = true, .base_hidden = 8};
  complete(config);
  return config;
}

/// Weights that learn by the model's width.
std::set<std::string> by_width(OptimizerKind kind, const ModelConfig& model = twice_as_wide()) {
  const Alone alone({.model = model, .optimizer = {.kind = kind}});
  std::set<std::string> names;
  alone.replica.each_parameter([&](const Parameter& p) {
    if (p.pace == Pace::by_width) names.insert(p.name);
  });
  return names;
}

class OwnOrder final : public CountingCommunicator {
 public:
  using CountingCommunicator::CountingCommunicator;
  const char* carrier() const override { return "a ring"; }
  bool adds_as_trees() const override { return false; }
};

}  // namespace

TEST(Replica, lets_matrices_or_all_else_follow_the_width_as_the_optimizer_wants) {
  const auto adam = by_width(OptimizerKind::adam), sgd = by_width(OptimizerKind::sgd);
  EXPECT_EQ(adam.size(), 8U);  // four matrices a layer
  EXPECT_TRUE(adam.contains("layers.0.attention.qkv.weight"));
  EXPECT_TRUE(sgd.contains("embedding.positions"));
  EXPECT_TRUE(sgd.contains("layers.1.mlp.up.bias"));
  EXPECT_FALSE(sgd.contains("embedding.words"));  // they have a rate of their own
  EXPECT_FALSE(sgd.contains("layers.0.attention.qkv.weight"));
}

TEST(Replica, lets_matrices_of_encoders_follow_the_width_and_no_table) {
  ModelConfig t5 = tiny_t5();
  t5.positions = Positions::relative;
  const auto of_t5 = by_width(OptimizerKind::adam, twice_as_wide(t5)),
             of_bert = by_width(OptimizerKind::adam, twice_as_wide(tiny_bert()));
  EXPECT_TRUE(of_t5.contains("decoder.layers.0.cross.key_value.weight"));
  EXPECT_FALSE(of_t5.contains("encoder.distances"));
  EXPECT_TRUE(by_width(OptimizerKind::sgd, twice_as_wide(t5)).contains("encoder.distances"));
  EXPECT_TRUE(of_bert.contains("pooler.weight"));
  EXPECT_TRUE(of_bert.contains("transform.weight"));
  EXPECT_FALSE(of_bert.contains("embedding.types"));
}

TEST(Replica, moves_what_follows_the_width_by_its_own_rate_and_epsilon) {
  const auto moved = [](double width_rate, double epsilon) {
    Alone alone({.model = twice_as_wide(), .optimizer = {.epsilon = epsilon, .weight_decay = 0}});
    const auto read = [&](const std::string& name) {
      std::vector<double> out;
      alone.replica.each_parameter([&](const Parameter& p) {
        if (p.name == name) out = numbers(p.value);
      });
      return out;
    };
    const auto before = read("layers.0.mlp.up.weight"), gain = read("layers.0.mlp_norm.gain");
    const std::vector<Batch> batches(1, tiny_batch(*alone.device, tiny_gpt2(), 2));
    (void)alone.replica.step(batches, {.seed = 3, .step = 1, .rate = 0, .width_rate = width_rate, .clip = 0});
    EXPECT_EQ(read("layers.0.mlp_norm.gain"), gain);
    return read("layers.0.mlp.up.weight")[5] - before[5];
  };
  EXPECT_EQ(moved(0, 1e-8), 0);
  EXPECT_NEAR(std::abs(moved(1e-3, 1e-12)), 1e-3, 1e-6);  // Adam's first step is the rate
  // An epsilon that drowns the gradient: half of it, as width is two, makes steps twice as large.
  const double wide = moved(1, 1), narrow = moved(1, 2);
  EXPECT_NEAR(wide / narrow, 2, 0.05);
}

TEST(Replica, in_exact_mode_asks_ranks_for_sums_as_trees) {
  const auto device = open_device("cpu", {.threads = 1});
  SoloCommunicator solo;
  Volumes volumes;
  OwnOrder ring(solo, volumes);
  const ProcessMesh mesh(ParallelLayout({}), ring);
  ModelConfig config = tiny_gpt2();
  EXPECT_NO_THROW(Replica({.model = config}, {*device, mesh}));
  config.exact = true;
  EXPECT_EQ(refused([&] {
              Replica({.model = config}, {*device, mesh});
            }),
            "{model.exact} adds over ranks as balanced trees, and a ring adds in an order of its own: run "
            "the ranks as "
            "threads or under MPI, or leave {model.exact} out");
}

TEST(Replica, is_of_the_family_it_is_given) {
  ModelKind kind = kind_named("gpt");
  kind.build = half_a_model;
  const Alone whole({.model = tiny_gpt2()}), half({.model = tiny_gpt2(), .kind = kind});
  int of_whole = 0, of_half = 0;
  whole.replica.each_parameter([&](const Parameter&) { ++of_whole; });
  half.replica.each_parameter([&](const Parameter&) { ++of_half; });
  EXPECT_EQ(of_whole - of_half, 12);
}

TEST(Replica, shows_every_parameter_before_it_has_memory) {
  int seen = 0;
  const Alone alone({.model = tiny_gpt2()}, [&](const Parameter& p) { seen += p.value ? 1000 : 1; });
  EXPECT_EQ(seen, 2 + 2 * 12 + 2);
}

TEST(Replica, evaluates_and_trains_with_any_number_of_microbatches) {
  Alone alone({.model = tiny_gpt2()});
  const double first = alone.step(2).loss();
  EXPECT_EQ(alone.replica.most_remembered(), 1);
  Evaluation sums;
  const std::vector<Batch> batches(3, tiny_batch(*alone.device, tiny_gpt2(), 2));
  alone.replica.evaluate(batches, sums);
  EXPECT_EQ(sums[0].count, 3 * 14);
  EXPECT_LT(sums[0].mean(), first);
  EXPECT_LT(alone.step(1).loss(), first);
}
