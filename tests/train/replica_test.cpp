// A replica goes by its family's value, and keeps what it is when runners change.
#include "weft/train/replica.h"

#include <gtest/gtest.h>

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

class OwnOrder final : public CountingCommunicator {
 public:
  using CountingCommunicator::CountingCommunicator;
  const char* carrier() const override { return "a ring"; }
  bool adds_as_trees() const override { return false; }
};

}  // namespace

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
