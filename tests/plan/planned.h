// A tiny run, what a plan says of it, and what its ranks hold and send when all run for real.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/support/trials.h"
#include "weft/backend/open.h"
#include "weft/comm/threads.h"
#include "weft/plan/plan.h"
#include "weft/tensor/host.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"
#include "weft/train/validate.h"

namespace weft::testing {

inline TrainConfig tiny(const ParallelConfig& parallel,
                        const std::function<void(TrainConfig&)>& change = {}) {
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

inline DeviceOptions options_of(const TrainConfig& c) {
  return {.threads = 1, .exact = c.model.exact, .trials = trials()};
}

inline Plan plan_for(const TrainConfig& c) {
  return plan_run(
      c, [&c] { return open_device("meta", options_of(c)); }, PlanFor::messages);
}

/// Of `b` samples.
inline Batch batch_here(const TrainConfig& c, std::int64_t b, Device& device, const ProcessMesh& mesh) {
  const std::int64_t s = c.model.sequence / c.parallel.cp;
  const std::vector<std::int32_t> zeros(std::size_t(s * b), 0), places(std::size_t(s), 0);
  const std::vector<std::int64_t> samples(std::size_t(b), mesh.place(Axis::dp));
  Batch batch;
  batch.text.tokens = from_host(device, {s, b}, zeros);
  batch.text.places = from_host(device, {s}, places);
  batch.text.positions = from_host(device, {s, b}, zeros);
  batch.targets = from_host(device, {s, b}, zeros);
  batch.mask = from_host(device, {s, b}, std::vector<float>(std::size_t(s * b), 1));
  batch.hold_samples(device, samples);
  return batch;
}

inline std::vector<Batch> batches_here(const TrainConfig& c, std::int64_t global, std::int64_t rows,
                                       const Replica& replica) {
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < global / c.parallel.dp / rows; ++i)
    batches.push_back(batch_here(c, rows, replica.device(), replica.mesh()));
  return batches;
}

/// All steps, and an evaluation while the batches of the last lie there.
inline void run(Replica& replica, const TrainConfig& c) {
  const std::int64_t rows = rows_of_a_pass(c.model, c.batch);
  std::vector<Batch> batches;
  if (!c.eval.skip_train) batches = batches_here(c, c.batch.global, rows, replica);
  for (std::int64_t step = 1; step <= c.length.iterations && !c.eval.skip_train; ++step)
    (void)replica.step(
        batches,
        {.step = step, .rate = 1e-4, .ends_rate = 1e-4, .clip = 1, .together = int(c.batch.micro / rows)});
  if (c.eval.iterations == 0) return;
  const std::int64_t looked = c.model.exact ? 1 : c.eval.micro;
  Evaluation sums;
  replica.evaluate(batches_here(c, c.eval.global, looked, replica), sums, int(c.eval.micro / looked));
}

/// Of its stage: the rank that a plan runs.
inline bool is_last(const TrainConfig& c, const ProcessMesh& mesh) {
  return mesh.place(Axis::tp) + 1 == c.parallel.tp && mesh.place(Axis::cp) + 1 == c.parallel.cp &&
         mesh.place(Axis::dp) + 1 == c.parallel.dp;
}

/// What the last rank of every stage sends in the second step, when all ranks run for real.
inline std::vector<Volumes> sent(const TrainConfig& c) {
  const ParallelLayout layout = layout_of(c.parallel);
  std::vector<Volumes> out(std::size_t(c.parallel.pp));
  run_as_threads(layout.world(), [&](Communicator& world) {
    const auto device = open_device("cpu", options_of(c));
    CountedCommunicator counts(world);
    const ProcessMesh mesh(layout, counts);
    Volumes volumes;
    charge(counts, mesh, volumes);
    Replica replica(replica_config(c), {*device, mesh});
    const std::int64_t rows = rows_of_a_pass(c.model, c.batch);
    const std::vector<Batch> batches = batches_here(c, c.batch.global, rows, replica);
    for (int step = 1; step <= 2; ++step) {
      volumes = {};
      (void)replica.step(
          batches,
          {.step = step, .rate = 1e-4, .ends_rate = 1e-4, .clip = 1, .together = int(c.batch.micro / rows)});
    }
    if (is_last(c, mesh)) out[std::size_t(mesh.place(Axis::pp))] = volumes;
  });
  return out;
}

inline void expect_the_plan_sends(const TrainConfig& c) {
  const Plan plan = plan_for(c);
  const auto real = sent(c);
  for (const KindOfRank& kind : plan.kinds) {
    Volumes most;
    for (int stage = kind.first; stage <= kind.last; ++stage) most = most_of(most, real[std::size_t(stage)]);
    for (int i = 0; i < kinds_of_partners; ++i)
      EXPECT_EQ(kind.sends[Partners(i)].bytes, most[Partners(i)].bytes)
          << "stage " << kind.first << " to " << name(Partners(i));
  }
}

/// Most bytes of every pipeline rank, when all ranks run for real.
inline std::vector<std::int64_t> most_held(const TrainConfig& c,
                                           const std::function<void(Replica&)>& prepare = {}) {
  const ParallelLayout layout = layout_of(c.parallel);
  std::vector<std::int64_t> most(std::size_t(c.parallel.pp), 0);
  run_as_threads(layout.world(), [&](Communicator& world) {
    const auto device = open_device("cpu", options_of(c));
    const ProcessMesh mesh(layout, world);
    Replica replica(replica_config(c), {*device, mesh});
    if (prepare) prepare(replica);
    run(replica, c);
    if (is_last(c, mesh)) most[std::size_t(mesh.place(Axis::pp))] = device->memory().total_peak;
  });
  return most;
}

inline void expect_the_plan_holds(const TrainConfig& c) {
  const Plan plan = plan_for(c);
  const auto most = most_held(c);
  for (const KindOfRank& kind : plan.kinds)
    for (int stage = kind.first; stage <= kind.last; ++stage)
      // Batches beyond those that are counted lie in one block, each less a few roundings up to 64 bytes.
      EXPECT_NEAR(double(kind.memory.total_peak), double(most[std::size_t(stage)]),
                  0.01 * double(most[std::size_t(stage)]))
          << "stage " << stage;
}

}  // namespace weft::testing
