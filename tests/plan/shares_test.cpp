// Plans against runs whose ranks cut gradients up and read their samples: to the byte.
#include <gtest/gtest.h>

#include <vector>

#include "tests/plan/planned.h"
#include "weft/train/feed.h"
#include "weft/train/run_data.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Words are most of it.
TrainConfig wordy(const char* kind, const ParallelConfig& parallel, int microbatches,
                  const std::function<void(TrainConfig&)>& change = {}) {
  return tiny(parallel, [&](TrainConfig& c) {
    c.model.kind = kind;
    c.model.layers = 2;
    c.model.vocabulary = 2000;
    c.data.split = "100,0,0";
    c.eval.iterations = 0;
    c.batch.global = microbatches * std::max(parallel.dp, 1);
    if (c.model.kind == "t5") {
      c.model.sequence = 48;
      c.model.decoder_sequence = 32;
    }
    if (change) change(c);
  });
}

/// Of every rank, in the order of ranks.
std::vector<std::int64_t> held_by_ranks(const TrainConfig& c) {
  const ParallelLayout layout = layout_of(c.parallel);
  std::vector<std::int64_t> most(std::size_t(layout.world()), 0);
  const RunData data = open_run_data(c);
  const auto& set = data.sets[data::Split::train];
  run_as_threads(layout.world(), [&](Communicator& world) {
    const auto device = open_device("cpu", options_of(c));
    const ProcessMesh mesh(layout, world);
    Replica replica(replica_config(c), {*device, mesh});
    Feed feed(set, run_sampler(c.data, set->size()), place_of(replica, c.data), 0);
    const data::SampleTurn turn{.global_batch = int(c.batch.global),
                                .micro_batch = int(c.batch.micro),
                                .rank = mesh.place(Axis::dp),
                                .ranks = c.parallel.dp};
    for (int step = 1; step <= 2; ++step) {
      StepOrder order = step_order(c);
      order.step = step;
      order.rate = order.ends_rate = 1e-4;
      (void)replica.step(feed.next(turn), order);
    }
    most[std::size_t(world.rank())] = device->memory().total_peak;
  });
  return most;
}

std::vector<std::int64_t> planned_for_ranks(const TrainConfig& c) {
  std::vector<std::int64_t> most;
  for (const KindOfRank& kind : plan_for(c).kinds)
    most.insert(most.end(), std::size_t(kind.ranks), kind.memory.total_peak);
  return most;
}

void expect_every_byte(const TrainConfig& c) { EXPECT_EQ(planned_for_ranks(c), held_by_ranks(c)); }

}  // namespace

// From the second microbatch on, what arrives lies beside a rank's shares while the third one computes.
TEST(Plan, counts_shares_that_arrive_while_the_next_microbatch_computes) {
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(zero);
    for (const int microbatches : {1, 2, 3, 5})
      expect_every_byte(wordy("gpt", {.dp = 2, .zero = zero}, microbatches));
  }
}

// A microbatch of a T5 is two texts, each with what stands beside it.
TEST(Plan, counts_all_that_further_microbatches_hold) {
  expect_every_byte(wordy("t5", {.dp = 2}, 9));
  expect_every_byte(wordy("t5", {.cp = 2, .dp = 1}, 9));
}

// The decoder's words are a copy of the encoder's, and stand apart where gradients are cut.
TEST(Plan, counts_words_that_another_stage_counts) {
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(zero);
    expect_every_byte(wordy("t5", {.pp = 2, .dp = 2, .zero = zero}, 3));
  }
  expect_every_byte(wordy("gpt", {.pp = 2, .dp = 2, .zero = 2}, 3));
}

/// Sums are of eighths, of heads as wide.
void exact(TrainConfig& c) {
  c.model.exact = true;
  c.model.channels = 8;
  c.model.vocabulary = 256;
}

// Of six microbatches two sums wait at once, as of four; of eight three. They are whole, whoever keeps what.
TEST(Plan, counts_whole_sums_that_wait_in_exact_mode) {
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(zero);
    for (const int microbatches : {3, 6, 8})
      expect_every_byte(wordy("gpt", {.dp = 2, .zero = zero}, microbatches, exact));
  }
}

// Of an expert to whom two ranks send tokens, each one's sequences have sums of their own. The router shares
// tokens out evenly.
TEST(Plan, counts_sums_of_experts_that_wait_in_exact_mode) {
  const TrainConfig c = wordy("gpt", {.dp = 2, .ep = 2}, 16, [](TrainConfig& of) {
    exact(of);
    of.model.vocabulary = 64;
    of.model.linear_bias = false;
    of.model.experts.count = 4;
    of.model.experts.router.balancing = {Balancing::sinkhorn};
  });
  const std::vector<std::int64_t> planned = planned_for_ranks(c), held = held_by_ranks(c);
  for (std::size_t rank = 0; rank < held.size(); ++rank)
    EXPECT_NEAR(double(planned[rank]), double(held[rank]), 0.03 * double(held[rank]));
}
