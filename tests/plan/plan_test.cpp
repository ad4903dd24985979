#include "weft/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/trials.h"
#include "weft/backend/open.h"
#include "weft/comm/threads.h"
#include "weft/plan/quiet.h"
#include "weft/tensor/host.h"
#include "weft/train/replica.h"
#include "weft/train/stages.h"
#include "weft/train/validate.h"

using namespace weft;

namespace {

TrainConfig tiny(const ParallelConfig& parallel, const std::function<void(TrainConfig&)>& change = {}) {
  TrainConfig c;
  c.model.layers = 4;
  c.model.hidden = 32;
  c.model.heads = 4;
  c.model.sequence = 16;
  c.model.vocabulary = 61;
  c.model.vocabulary_unit = 8;
  c.data.mock = true;
  c.batch.micro = 1;
  c.batch.global = 16;
  c.length.iterations = 2;
  c.rate.peak = 1e-3;
  c.parallel = parallel;
  if (change) change(c);
  const int world = c.parallel.tp * c.parallel.cp * c.parallel.pp * std::max(c.parallel.dp, 1);
  complete(c, world);
  return c;
}

DeviceOptions options(const TrainConfig& c) {
  return {.threads = 1, .exact = c.model.exact, .trials = weft::testing::trials()};
}

Plan planned(const TrainConfig& c) {
  return plan_run(c, [&c] { return open_device("meta", options(c)); });
}

Batch batch_here(const TrainConfig& c, Device& device, const ProcessMesh& mesh) {
  const std::int64_t s = c.model.sequence / c.parallel.cp, b = rows_of_a_pass(c.model, c.batch);
  const std::vector<std::int32_t> zeros(std::size_t(s * b), 0), places(std::size_t(s), 0);
  const std::vector<std::int64_t> samples(std::size_t(b), mesh.place(Axis::dp));
  Batch batch;
  batch.text.tokens = from_host(device, {s, b}, zeros);
  batch.text.places = from_host(device, {s}, places);
  batch.text.positions = from_host(device, {s, b}, zeros);
  batch.targets = from_host(device, {s, b}, zeros);
  batch.mask = from_host(device, {s, b}, std::vector<float>(std::size_t(s * b), 1));
  batch.samples = from_host(device, {b}, samples);
  return batch;
}

/// Most bytes of every pipeline rank, when all ranks run for real.
std::vector<std::int64_t> measured(const TrainConfig& c) {
  const ParallelLayout layout = layout_of(c.parallel);
  std::vector<std::int64_t> most(std::size_t(c.parallel.pp), 0);
  run_as_threads(layout.world(), [&](Communicator& world) {
    const auto device = open_device("cpu", options(c));
    const ProcessMesh mesh(layout, world);
    Replica replica(replica_config(c), {*device, mesh});
    std::vector<Batch> batches;
    for (std::int64_t i = 0; i < c.batch.global / c.parallel.dp / rows_of_a_pass(c.model, c.batch); ++i)
      batches.push_back(batch_here(c, *device, mesh));
    for (int step = 1; step <= 2; ++step)
      (void)replica.step(batches, {.step = step,
                                   .rate = 1e-4,
                                   .ends_rate = 1e-4,
                                   .clip = 1,
                                   .together = int(c.batch.micro / rows_of_a_pass(c.model, c.batch))});
    const bool last = mesh.place(Axis::tp) + 1 == c.parallel.tp &&
                      mesh.place(Axis::cp) + 1 == c.parallel.cp && mesh.place(Axis::dp) + 1 == c.parallel.dp;
    if (last) most[std::size_t(mesh.place(Axis::pp))] = device->memory().total_peak;
  });
  return most;
}

void expect_the_plan_holds(const TrainConfig& c) {
  const Plan plan = planned(c);
  const auto most = measured(c);
  for (const KindOfRank& kind : plan.kinds)
    for (int stage = kind.first; stage <= kind.last; ++stage)
      // Batches beyond those that are counted lie in one block, each less a few roundings up to 64 bytes.
      EXPECT_NEAR(double(kind.memory.total_peak), double(most[std::size_t(stage)]),
                  0.01 * double(most[std::size_t(stage)]))
          << "stage " << stage;
}

}  // namespace

TEST(Plan, counts_what_one_rank_will_hold) { expect_the_plan_holds(tiny({.dp = 1})); }

TEST(Plan, counts_ranks_that_share_layers_and_batches) {
  expect_the_plan_holds(tiny({.tp = 2, .dp = 2, .sequence = true, .zero = 1}));
}

TEST(Plan, counts_ranks_that_share_gradients_and_weights) {
  expect_the_plan_holds(tiny({.dp = 2, .zero = 2}));
  expect_the_plan_holds(tiny({.tp = 2, .dp = 2, .sequence = true, .zero = 3}));
  expect_the_plan_holds(tiny({.pp = 2, .dp = 2, .zero = 3, .reduce_once = true}));
}

TEST(Plan, counts_every_stage_of_a_pipeline) {
  const TrainConfig c = tiny({.pp = 4, .dp = 1});
  expect_the_plan_holds(c);
  const Plan plan = planned(c);
  EXPECT_EQ(plan.kinds.front().first, 0);
  EXPECT_EQ(plan.kinds.back().last, 3);
  EXPECT_GT(plan.kinds.front().memory.total_peak, plan.kinds[1].memory.total_peak);  // it has the embedding
}

TEST(Plan, counts_ranks_that_share_a_sequence) { expect_the_plan_holds(tiny({.cp = 2, .dp = 1})); }

// The deeper the tree over sequences, the more sums wait: 16 microbatches are more than are counted one by
// one.
TEST(Plan, counts_the_sums_that_wait_in_exact_mode) {
  const auto exact = [](TrainConfig& c) {
    c.model.exact = true;
    c.model.channels = 8;
    c.model.vocabulary = 64;
  };
  expect_the_plan_holds(tiny({.dp = 1}, exact));
  expect_the_plan_holds(tiny({.pp = 2, .dp = 1}, exact));
  expect_the_plan_holds(tiny({.tp = 2, .dp = 1}, [&](TrainConfig& c) {
    exact(c);
    c.model.groups = 1;  // which both ranks share
  }));
}

TEST(Plan, says_how_much_a_step_takes) {
  const Plan plan = planned(tiny({.dp = 1}));
  EXPECT_EQ(plan.tokens, 16 * 16);
  EXPECT_EQ(plan.parameters.total(), count_parameters(tiny({.dp = 1}).model).total());
  EXPECT_EQ(plan.flops, 16 * training_flops(tiny({.dp = 1}).model, 16));
  ASSERT_EQ(plan.kinds.size(), 1u);
  EXPECT_EQ(plan.kinds[0].ranks, 1);
}

TEST(QuietWorld, knows_the_circles_of_a_layout_as_threads_make_them) {
  const ParallelLayout layout({.tp = 2, .cp = 2, .dp = 3, .pp = 2});
  const Colors colors = colors_of(layout);
  run_as_threads(layout.world(), [&](Communicator& world) {
    const ProcessMesh real(layout, world);
    QuietWorld alone(world.rank(), colors);
    const ProcessMesh quiet(layout, alone);
    for (const Axes& along : {Axes{Axis::tp}, Axes{Axis::dp, Axis::cp}, Axes{Axis::pp}}) {
      EXPECT_EQ(quiet.along(along).rank(), real.along(along).rank());
      EXPECT_EQ(quiet.along(along).size(), real.along(along).size());
    }
  });
}
