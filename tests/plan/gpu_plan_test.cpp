// What a plan says of a run on GPUs is what its ranks hold there, whichever way they speak.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/plan/planned.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/nccl_lines.h"
#include "weft/base/format.h"
#include "weft/comm/direct.h"
#include "weft/comm/through_host.h"

using namespace weft;
using namespace weft::testing;

namespace {

Plan plan_for_gpus(const TrainConfig& c, SpokenBy by) {
  DeviceOptions options = options_of(c);
  options.counts_for = gpus_here().all.at(0);
  return plan_run(c, {[=] { return open_device("meta", options); }, by});
}

/// A rank's GPU, and how it speaks: with one of its own by NCCL.
struct GpuRank {
  GpuRank(Communicator& world, const TrainConfig& c, SpokenBy by)
      : device({.device = by == SpokenBy::hosts_for_gpus ? 0 : world.rank(), .exact = c.model.exact}),
        lines(device) {
    using Sums = DirectCommunicator::Sums;
    if (by == SpokenBy::hosts_for_gpus)
      words = std::make_unique<HostCommunicator>(world, *host);
    else
      words = std::make_unique<DirectCommunicator>(world, device, lines,
                                                   c.model.exact ? Sums::trees : Sums::of_lines);
  }
  std::unique_ptr<Device> host = open_device("cpu", {.threads = 1});
  CudaDevice device;
  cuda::NcclLines lines;
  std::unique_ptr<Communicator> words;
};

/// Most bytes of every stage's last rank.
std::vector<std::int64_t> most_held_on_gpus(const TrainConfig& c, SpokenBy by) {
  const ParallelLayout layout = layout_of(c.parallel);
  std::vector<std::int64_t> most(std::size_t(c.parallel.pp), 0);
  run_as_threads(layout.world(), [&](Communicator& world) {
    GpuRank rank(world, c, by);
    {
      const ProcessMesh mesh(layout, *rank.words);
      Replica replica(replica_config(c), {rank.device, mesh});
      run(replica, c);
      if (is_last(c, mesh)) most[std::size_t(mesh.place(Axis::pp))] = rank.device.memory().total_peak;
    }
    rank.device.synchronize();
    world.barrier();  // lines end when all are done
  });
  return most;
}

void expect_the_plan_holds_on_gpus(const TrainConfig& c, SpokenBy by) {
  const emulated::CardsHere cards({.count = layout_of(c.parallel).world(), .capability = 9});
  emulated::set_patience(60);  // a rank's GPU waits while another's is emulated
  const emulated::Idle idle;
  const Plan plan = plan_for_gpus(c, by);
  const auto most = most_held_on_gpus(c, by);
  for (const KindOfRank& kind : plan.kinds)
    for (int stage = kind.first; stage <= kind.last; ++stage)
      // Batches beyond those that are counted lie in one block, each less a few roundings up to 64 bytes.
      EXPECT_NEAR(double(kind.memory.total_peak), double(most[std::size_t(stage)]), 1024)
          << "stage " << stage;
  EXPECT_EQ(join(emulated::take_reports(), "; "), "");
}

/// Wide enough that what words take is seen: sums of activations, gradients and weights in 16 bits.
TrainConfig small(const ParallelConfig& parallel, bool exact) {
  return tiny(parallel, [=](TrainConfig& c) {
    c.model.layers = 2;
    c.model.hidden = 64;
    c.model.precision = Precision::bf16;
    c.model.exact = exact;
    c.batch.global = 4;
    c.scaling.reduce_in_bf16 = !exact;
    c.eval.iterations = 0;
  });
}

}  // namespace

TEST(PlanOfGpus, counts_what_words_take_whoever_says_them) {
  for (const ParallelConfig& parallel : {ParallelConfig{.tp = 2, .dp = 1},
                                         {.tp = 2, .dp = 1, .sequence = true},
                                         {.pp = 2, .dp = 1},
                                         {.dp = 2, .zero = 0},
                                         {.dp = 2, .zero = 1},
                                         {.dp = 2, .zero = 2},
                                         {.cp = 2, .dp = 1}}) {
    SCOPED_TRACE(text("tp ", parallel.tp, " pp ", parallel.pp, " cp ", parallel.cp, " zero ", parallel.zero,
                      parallel.sequence ? " sequence" : ""));
    for (const SpokenBy by : {SpokenBy::hosts_for_gpus, SpokenBy::gpus})
      expect_the_plan_holds_on_gpus(small(parallel, false), by);
  }
}

TEST(PlanOfGpus, counts_the_terms_of_sums_that_are_trees) {
  for (const ParallelConfig& parallel : {ParallelConfig{.tp = 2, .dp = 1}, {.dp = 2, .zero = 1}})
    expect_the_plan_holds_on_gpus(small(parallel, true), SpokenBy::gpus_as_trees);
}
