// Plans against runs that read their samples: what they guess is more, or less, than the next word.
#include <gtest/gtest.h>

#include "tests/support/trials.h"
#include "weft/backend/open.h"
#include "weft/comm/solo.h"
#include "weft/plan/plan.h"
#include "weft/train/feed.h"
#include "weft/train/replica.h"
#include "weft/train/run_data.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"
#include "weft/train/validate.h"

using namespace weft;

namespace {

TrainConfig tiny(const char* kind) {
  TrainConfig c;
  c.model.kind = kind;
  c.model.layers = 2;
  c.model.hidden = 32;
  c.model.heads = 4;
  c.model.sequence = 64;
  c.model.vocabulary = 500;
  c.data.mock = true;
  c.batch.micro = 2;
  c.batch.global = 4;
  c.length.iterations = 2;
  c.rate.peak = 1e-3;
  c.eval.iterations = 0;
  return c;
}

TrainConfig completed(TrainConfig c) {
  complete(c, 1);
  return c;
}

DeviceOptions options() { return {.threads = 1, .trials = weft::testing::trials()}; }

std::int64_t planned(const TrainConfig& c) {
  const Plan plan = plan_run(
      c, [] { return open_device("meta", options()); }, PlanFor::memory);
  return plan.kinds.front().memory.total_peak;
}

std::int64_t measured(const TrainConfig& c) {
  const auto device = open_device("cpu", options());
  SoloCommunicator solo;
  const ProcessMesh mesh(layout_of(c.parallel), solo);
  Replica replica(replica_config(c), {*device, mesh});
  const RunData data = open_run_data(c);
  const auto& set = data.sets[data::Split::train];
  Feed feed(set, run_sampler(c.data, set->size()), place_of(replica, c.data), 0);
  for (int step = 1; step <= 2; ++step) {
    StepOrder order = step_order(c);
    order.step = step;
    order.rate = order.ends_rate = 1e-4;
    (void)replica.step(feed.next({.global_batch = 4, .micro_batch = 2}), order);
  }
  return device->memory().total_peak;
}

}  // namespace

// Batches beyond those that are counted lie in one block, each less a few roundings up to 64 bytes.
TEST(Plan, counts_the_few_logits_of_a_bert) {
  const TrainConfig c = completed(tiny("bert"));
  EXPECT_EQ(c.model.most_guesses, 9);
  EXPECT_NEAR(double(planned(c)), double(measured(c)), 0.01 * double(measured(c)));
  TrainConfig all = c;
  all.model.most_guesses = 0;
  EXPECT_LT(planned(c) + 100'000, planned(all));
}

TEST(Plan, counts_what_guesses_of_further_words_read) {
  TrainConfig c = tiny("gpt");
  c.model.ahead.depths = 2;
  c.data.between_documents = true;
  c = completed(c);
  EXPECT_EQ(planned(c), measured(c));
}
