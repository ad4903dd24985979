// ZeRO's stages: what a rank holds and what ranks send in a step, counted and by formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "tests/equal/run.h"
#include "tests/support/counting.h"
#include "tests/support/sanitized.h"
#include "tests/support/tiny.h"
#include "weft/base/number.h"
#include "weft/comm/counted.h"
#include "weft/comm/threads.h"
#include "weft/mesh/mesh.h"
#include "weft/train/replica.h"
#include "weft/train/settings.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct ZeroRun {
  const char* model = "gpt2";
  Precision precision = Precision::f32;
  int zero = 0, ranks = 2;
  std::int64_t microbatches = 1;
  bool once = false;
  int groups = 1;
  bool sum_in_bf16 = false;
  int near = 0;
};

/// Of one rank, in its second step.
struct RankMeasures {
  MemoryMeter memory;
  Volumes sent;
  Sent leaves;
  std::int64_t elements = 0;                                  // of all parameters
  std::int64_t padded = 0;                                    // with what lies between them
  std::int64_t kept = 0;                                      // of these, the rank's share
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks;  // both, of each block
  std::int64_t read = 0;        // of these, once for each way in which a layer reads them
  std::int64_t two_layers = 0;  // the most that two neighbours have
};

/// How often a microbatch reads a GPT's parameter: its embedding and its head want nothing in backward, and
/// tied words are read by both.
int reads(const ModelConfig& config, const Parameter& p) {
  if (p.name == "embedding.words") return config.tied_output ? 2 : 1;
  return p.name == "embedding.positions" || p.name == "output.words" ? 1 : 2;
}

void count_weights(Replica& replica, const ModelConfig& config, RankMeasures& seen) {
  std::map<int, std::int64_t> layers;
  for (const WeightBlock& block : replica.weights().blocks()) {
    seen.padded += block.elements;
    seen.kept += block.kept;
    seen.blocks.emplace_back(block.elements, block.kept);
    for (const WeightBucket& bucket : block.buckets) {
      const Parameter& first = *block.slots[std::size_t(bucket.first_slot)].parameter;
      seen.read += bucket.elements * reads(config, first);
      layers[first.layer] += bucket.elements;
    }
    for (const WeightSlot& slot : block.slots) seen.elements += slot.parameter->shape.elements();
  }
  for (const auto& [layer, elements] : layers)
    seen.two_layers = std::max(seen.two_layers, elements + (layer > 0 ? layers[layer - 1] : 0));
}

ModelConfig model_of(const ZeroRun& asked) {
  ModelConfig config = shape_of(asked.model, 6);
  config.precision = asked.precision;
  return config;
}

TrainConfig settings_of(const ZeroRun& asked) {
  TrainConfig out;
  out.model = model_of(asked);
  out.parallel = {.dp = asked.ranks, .zero = asked.zero};
  out.parallel.shard_groups = asked.groups;
  out.parallel.near_ranks = asked.near;
  out.parallel.reduce_once = asked.once;
  out.scaling.sum_in_bf16 = asked.sum_in_bf16;
  out.run.seed = 7;
  return out;
}

RankMeasures rank_of(const ZeroRun& asked, Communicator& world) {
  const ModelConfig config = model_of(asked);
  RankMeasures seen;
  CountingCommunicator words(world, seen.sent);
  CountedCommunicator counts(words);
  counts.charge_here(seen.leaves);
  const ProcessMesh mesh(ParallelLayout({.dp = asked.ranks}), counts);
  const auto device = open_device("cpu", {.threads = 1});
  Replica replica(replica_config(settings_of(asked)), {*device, mesh});
  for (int step = 1; step <= 2; ++step) {
    std::vector<Batch> batches;
    for (std::int64_t i = 0; i < asked.microbatches; ++i)
      batches.push_back(tiny_rows(*device, config, {.step = step, .first = 8 * world.rank() + i}));
    seen.sent.clear();
    seen.leaves = {};
    device->forget_peaks();
    (void)replica.step(batches, {.seed = 3, .step = step, .rate = 1e-3, .ends_rate = 1e-3, .clip = 1});
  }
  seen.memory = device->memory();
  count_weights(replica, config, seen);
  return seen;
}

RankMeasures seen_by_the_last_rank(const ZeroRun& asked) {
  RankMeasures out;
  run_as_threads(asked.ranks, [&](Communicator& world) {
    RankMeasures seen = rank_of(asked, world);
    if (world.rank() + 1 == world.size()) out = std::move(seen);
  });
  return out;
}

enum class Of { all, share };
/// Memory comes in lines of 64 bytes.
std::int64_t bytes(const RankMeasures& seen, Of what, std::int64_t each) {
  std::int64_t sum = 0;
  for (const auto& [all, share] : seen.blocks) sum += round_up(each * (what == Of::all ? all : share), 64);
  return sum;
}

std::int64_t now(const RankMeasures& seen, Use use) { return seen.memory.now[std::size_t(use)]; }
std::int64_t peak(const RankMeasures& seen, Use use) { return seen.memory.peak[std::size_t(use)]; }

}  // namespace

// Masters and moments take 12 bytes a parameter, or 8 where weights are f32 and their own masters; gradients
// are f32. So ZeRO-3 holds 18/N bytes of bf16 and 16/N of f32 between steps.
TEST(Zero, holds_its_shares_between_steps_and_not_a_byte_more) {
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const int zero : {1, 2, 3})
      for (const int ranks : {2, 4}) {
        const RankMeasures seen =
            seen_by_the_last_rank({.precision = precision, .zero = zero, .ranks = ranks});
        const std::int64_t weight = precision == Precision::f32 ? 4 : 2;
        EXPECT_EQ(seen.kept, exact(seen.padded, ranks));
        EXPECT_LE(seen.padded - seen.elements, 64 * 16 * ranks) << "64 buckets at most";
        EXPECT_EQ(now(seen, Use::weights), bytes(seen, zero == 3 ? Of::share : Of::all, weight));
        EXPECT_EQ(now(seen, Use::gradients), bytes(seen, zero >= 2 ? Of::share : Of::all, 4));
        EXPECT_EQ(now(seen, Use::optimizer), (weight == 4 ? 2 : 3) * bytes(seen, Of::share, 4));
      }
}

// Two bytes of an element between steps; in a step a layer's more in f32, or what an update widens at once:
// of a model this small, all that the rank updates of a block.
TEST(Zero, keeps_gradients_of_two_bytes_and_room_for_a_layer) {
  for (const int zero : {0, 1, 2, 3}) {
    const RankMeasures seen = seen_by_the_last_rank(
        {.precision = Precision::bf16, .zero = zero, .microbatches = 3, .sum_in_bf16 = true});
    std::int64_t widened = 0;
    for (const auto& [all, share] : seen.blocks) widened = std::max(widened, 4 * (zero == 0 ? all : share));
    EXPECT_EQ(now(seen, Use::gradients), bytes(seen, zero >= 2 ? Of::share : Of::all, 2));
    EXPECT_LE(peak(seen, Use::gradients),
              now(seen, Use::gradients) + std::max(4 * (seen.two_layers + 29 * 32), widened));
    const std::int64_t times = zero >= 2 ? 3 : 1;
    if (zero > 0) {
      EXPECT_EQ(seen.sent.at("reduce_scatter"), 2 * seen.padded * times);
    }
  }
}

// Of six layers, two are whole at once; of gradients, one layer's are added to while another's leave, and the
// tied words' wait for the embedding.
TEST(Zero, has_few_layers_whole_during_a_step) {
  for (const std::int64_t microbatches : {1, 3}) {
    const RankMeasures seen = seen_by_the_last_rank({.zero = 3, .microbatches = microbatches});
    EXPECT_LE(peak(seen, Use::weights), 4 * (seen.kept + seen.two_layers));
    EXPECT_LE(peak(seen, Use::gradients), 4 * (seen.kept + seen.two_layers + 29 * 32));
    EXPECT_LT(peak(seen, Use::gradients), 4 * seen.padded);
    EXPECT_LE(peak(seen, Use::communication), 4 * seen.two_layers);
  }
}

// In parameters: 2 of them for ZeRO-1 and 2, and 3 for ZeRO-3, less what backward does not read.
TEST(Zero, sends_what_the_formulas_say) {
  for (const char* model : {"gpt2", "llama"})
    for (const std::int64_t microbatches : {1, 4})
      for (const bool once : {false, true})
        for (const int zero : {1, 2, 3}) {
          const RankMeasures seen = seen_by_the_last_rank(
              {.model = model, .zero = zero, .microbatches = microbatches, .once = once});
          const std::int64_t times = zero == 1 || once ? 1 : microbatches;
          EXPECT_EQ(seen.sent.at("reduce_scatter"), 4 * seen.padded * times);
          EXPECT_EQ(seen.sent.at("all_gather"), 4 * (zero == 3 ? seen.read * microbatches : seen.padded));
          EXPECT_LE(seen.read, 2 * seen.padded);
        }
}

// Four ranks in two groups hold what two ranks hold, and send a share more, once a step.
TEST(Zero, of_groups_holds_shares_of_a_group_and_adds_them_among_groups) {
  for (const std::int64_t microbatches : {1, 3})
    for (const int zero : {1, 2, 3}) {
      ZeroRun asked{.zero = zero, .ranks = 4, .microbatches = microbatches};
      const RankMeasures all = seen_by_the_last_rank(asked);
      asked.groups = 2;
      const RankMeasures seen = seen_by_the_last_rank(asked);
      EXPECT_EQ(seen.kept, exact(seen.padded, 2));
      EXPECT_EQ(now(seen, Use::weights), bytes(seen, zero == 3 ? Of::share : Of::all, 4));
      EXPECT_EQ(now(seen, Use::gradients), bytes(seen, zero >= 2 ? Of::share : Of::all, 4));
      EXPECT_EQ(now(seen, Use::optimizer), 2 * bytes(seen, Of::share, 4));
      EXPECT_EQ(seen.sent.at("reduce_scatter"), 4 * seen.padded * (zero == 1 ? 1 : microbatches));
      EXPECT_EQ(seen.sent.at("all_gather"), 4 * (zero == 3 ? seen.read * microbatches : seen.padded));
      EXPECT_EQ(seen.sent.at("all_reduce") - all.sent.at("all_reduce"), 4 * seen.kept);
    }
}

// Of four ranks, two near each other: every weight comes from all of them once in a step, three quarters of
// it from others; whatever is read again comes from the other of the two.
TEST(Zero, of_near_ranks_gathers_from_all_once_a_step) {
  for (const std::int64_t microbatches : {1, 3}) {
    ZeroRun asked{.zero = 3, .ranks = 4, .microbatches = microbatches};
    const RankMeasures far = seen_by_the_last_rank(asked);
    asked.near = 2;
    const RankMeasures seen = seen_by_the_last_rank(asked);
    EXPECT_EQ(far.leaves.of(Traffic::gathered), 4 * exact(3 * far.read * microbatches, 4));
    EXPECT_EQ(seen.leaves.of(Traffic::gathered),
              4 * (exact(3 * seen.padded, 4) + exact(seen.read * microbatches - seen.padded, 2)));
    EXPECT_EQ(seen.leaves.of(Traffic::sums), far.leaves.of(Traffic::sums));
    EXPECT_EQ(now(seen, Use::weights), now(far, Use::weights) + 4 * exact(seen.padded, 2));
  }
}

TEST(Zero, of_near_ranks_changes_no_bit) {
  const std::vector<ParallelConfig> layouts{{.dp = 4, .zero = 3},
                                            {.cp = 2, .dp = 2, .zero = 3},
                                            {.pp = 2, .dp = 4, .zero = 3},
                                            {.dp = 8, .zero = 3, .shard_groups = 2}};
  for (const ParallelConfig& layout : some_of(layouts, 2))
    for (const char* model : {"gpt2", "mixture"}) {
      ModelConfig config = shape_of(model, 2);
      config.precision = Precision::bf16;
      Cut cut{.parallel = layout, .micro_batch = 1, .steps = rounds(4)};
      const auto curve = [&](int near) {
        cut.parallel.near_ranks = near;
        Curve out = train(config, cut);
        out.bytes_at_rest.clear();
        return out;
      };
      EXPECT_EQ(curve(2), curve(0)) << name_of(cut) << " " << model;
      cut.parallel.near_ranks = 2;
      EXPECT_EQ(memory_difference(config, cut), "") << name_of(cut) << " " << model;
    }
}

TEST(Zero, gathers_weights_in_the_type_that_layers_read) {
  const RankMeasures seen = seen_by_the_last_rank({.precision = Precision::bf16, .zero = 3});
  EXPECT_EQ(seen.sent.at("all_gather"), 2 * seen.read);
  EXPECT_EQ(seen.sent.at("reduce_scatter"), 4 * seen.padded);
}

// One microbatch a step: what is added first has no meaning.
TEST(Zero, changes_no_bit_of_a_step_of_one_microbatch_in_any_stage) {
  for (const ParallelConfig& layout :
       {ParallelConfig{.dp = 2}, ParallelConfig{.tp = 2, .dp = 4, .sequence = true},
        ParallelConfig{.pp = 2, .dp = 2}, ParallelConfig{.tp = 2, .cp = 2, .dp = 2}}) {
    const ModelConfig config = shape_of("gpt2", 4);
    const auto curve = [&](int zero) {
      Cut cut{.parallel = layout, .micro_batch = 8 / layout.dp, .steps = rounds(5)};
      cut.parallel.zero = zero;
      Curve out = train(config, cut);
      out.bytes_at_rest.clear();
      return out;
    };
    const Curve whole = curve(0);
    for (const int zero : {1, 2, 3}) EXPECT_EQ(curve(zero), whole) << "stage " << zero;
    EXPECT_TRUE(whole.copies_agree);
  }
}

// Sums over ranks are trees, and two groups are the halves of them.
TEST(Zero, of_groups_changes_no_bit_of_a_step_of_one_microbatch) {
  for (const ParallelConfig& layout :
       {ParallelConfig{.dp = 4}, ParallelConfig{.cp = 2, .dp = 4}, ParallelConfig{.pp = 2, .dp = 4}}) {
    const auto curve = [&](int zero, int groups) {
      Cut cut{.parallel = layout, .micro_batch = 8 / layout.dp, .steps = rounds(4)};
      cut.parallel.zero = zero;
      cut.parallel.shard_groups = groups;
      Curve out = train(shape_of("gpt2", 4), cut);
      out.bytes_at_rest.clear();
      return out;
    };
    const Curve whole = curve(0, 1);
    for (const int zero : {1, 2, 3}) EXPECT_EQ(curve(zero, 2), whole) << "stage " << zero;
  }
}

// The ranks that hold the same experts are fewer: two, so that each of two groups has all of them.
TEST(Zero, of_groups_of_experts_is_that_of_one_group) {
  const auto curve = [](int groups) {
    Cut cut{.parallel = {.dp = 4, .ep = 2, .zero = 2}, .micro_batch = 1, .steps = rounds(4)};
    cut.parallel.shard_groups = groups;
    return train(shape_of("mixture", 2), cut);
  };
  EXPECT_EQ(difference(curve(2), curve(1), {2e-6, 1e-4}), "");
}

// Tied words stand in the first and the last stage, each rank of either keeps its share, and recomputed
// layers are lent as one.
TEST(Zero, of_a_pipeline_or_with_recomputation_gives_the_bits_of_uncut_weights) {
  int turn = 0;
  for (const char* model : {"gpt2", "llama"})
    for (const char* schedule : {"1f1b", "zb-h1", "zb-v", "gpipe"}) {
      if (turn++ % every(3) != 0) continue;
      ModelConfig config = shape_of(model, 4);
      config.recompute = {.what = Recompute::full, .layers = 2};
      const int chunks = schedule == std::string("zb-v") ? 2 : 1;
      const auto curve = [&](int zero, bool once) {
        Curve out = train(config, {.parallel = {.pp = 2,
                                                .dp = 2,
                                                .schedule = schedule,
                                                .virtual_stages = chunks,
                                                .zero = zero,
                                                .reduce_once = once},
                                   .micro_batch = 1,
                                   .steps = rounds(4)});
        out.bytes_at_rest.clear();
        return out;
      };
      const Curve first = curve(1, false);
      EXPECT_TRUE(first.copies_agree);
      for (const int zero : {2, 3}) EXPECT_EQ(curve(zero, true), first) << schedule << ", stage " << zero;
      EXPECT_EQ(curve(3, false), curve(2, false)) << schedule;
    }
}

// Biases that tensor-parallel ranks cut wait longer for their gradients than norms that they hold whole: a
// rank that counted these would add them over other microbatches first than one that does not, did they leave
// together.
TEST(Zero, adds_gradients_of_copies_in_one_order_on_all_ranks) {
  for (const char* schedule : {"zb-h1", "zb-v"}) {
    const int chunks = schedule == std::string("zb-v") ? 2 : 1;
    const Curve curve = train(
        shape_of("gpt2", 4),
        {.parallel = {.tp = 2, .pp = 2, .dp = 2, .schedule = schedule, .virtual_stages = chunks, .zero = 2},
         .micro_batch = 1,
         .steps = rounds(5)});
    EXPECT_TRUE(curve.copies_agree) << schedule;
  }
}

TEST(Zero, finds_what_is_not_finite_in_every_stage) {
  const ModelConfig config = shape_of("gpt2", 2);
  const auto said = [&](int zero) {
    return searched(config, {.parallel = {.dp = 2, .zero = zero}, .micro_batch = 1},
                    "layers.1.mlp.up.weight");
  };
  const auto whole = said(0);
  EXPECT_EQ(whole.front(), "first seen after mlp block of layer 1, samples 1000");
  for (const int zero : {1, 2, 3}) EXPECT_EQ(said(zero), whole) << "stage " << zero;
}
