#include "weft/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"

using namespace weft;
using namespace weft::data;

namespace {

SampleTurn turn_of(const Json& c, int rank) {
  const int micro = c["micro_batch"], ranks = c["dp_size"];
  return {.global_batch = micro * ranks, .micro_batch = micro, .rank = rank, .ranks = ranks};
}

}  // namespace

TEST(Sampler, walks_in_sequence_as_megatron_does) {
  for (const Json& c : golden("samplers", "MegatronPretrainingSampler")) {
    if (!c["drop_last"]) continue;  // no run of ours ends with a batch that is not whole
    for (int rank = 0; rank < c["dp_size"].get<int>(); ++rank) {
      const SampleTurn turn = turn_of(c, rank);
      const Json& expected = c["ranks"][static_cast<std::size_t>(rank)];
      std::int64_t consumed = c["consumed"];
      for (const Json& batch : expected) {
        EXPECT_EQ(Json(sequential_sampler(c["total"])->at(consumed, turn)), batch);
        consumed += turn.global_batch;
      }
    }
  }
}

// Samples beyond the last whole batch are another's to fill up (in_whole_batches).
TEST(Sampler, walks_through_a_whole_set_as_megatrons_full_validation_does) {
  for (const Json& c : golden("samplers", "MegatronFullValidationSampler")) {
    const int ranks = c["dp_size"];
    const std::int64_t total = c["total"];
    for (int rank = 0; rank < ranks; ++rank)
      for (std::int64_t step = 0; step < total / ranks; ++step) {
        const SampleTurn turn{.global_batch = ranks, .micro_batch = 1, .rank = rank, .ranks = ranks};
        EXPECT_EQ(Json(sequential_sampler(total)->at(step * ranks, turn)),
                  c["ranks"][std::size_t(rank)][std::size_t(step)]);
      }
  }
}

TEST(Sampler, cycles_through_epochs_as_megatron_does) {
  for (const Json& c : golden("samplers", "MegatronPretrainingRandomSampler")) {
    const auto sampler = cyclic_sampler(c["total"], c["data_sharding"] ? Sharding::on : Sharding::off);
    for (int rank = 0; rank < c["dp_size"].get<int>(); ++rank) {
      const SampleTurn turn = turn_of(c, rank);
      std::int64_t consumed = c["consumed"];
      for (const Json& batch : c["ranks"][static_cast<std::size_t>(rank)]["batches"]) {
        EXPECT_EQ(Json(sampler->at(consumed, turn)), batch);
        consumed += turn.global_batch;
      }
      EXPECT_EQ(consumed,
                c["ranks"][static_cast<std::size_t>(rank)]["consumed_after_one_pass"].get<std::int64_t>());
    }
  }
}

TEST(Sampler, gives_the_same_global_batch_to_any_number_of_ranks) {
  const auto whole = [](const Sampler& sampler, int ranks, Owners owners) {
    std::vector<std::int64_t> all;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto part = sampler.at(
          48, {.global_batch = 16, .micro_batch = 2, .rank = rank, .ranks = ranks, .owners = owners});
      all.insert(all.end(), part.begin(), part.end());
    }
    if (owners == Owners::megatron) std::sort(all.begin(), all.end());
    return all;
  };
  const auto sequential = sequential_sampler(100);
  const auto cyclic = cyclic_sampler(100, Sharding::off);
  for (const int ranks : {2, 4, 8}) {
    EXPECT_EQ(whole(*sequential, ranks, Owners::contiguous), whole(*sequential, 1, Owners::contiguous));
    EXPECT_EQ(whole(*sequential, ranks, Owners::megatron), whole(*sequential, 1, Owners::megatron));
    EXPECT_EQ(whole(*cyclic, ranks, Owners::contiguous), whole(*cyclic, 1, Owners::contiguous));
  }
}

TEST(Sampler, says_what_it_cannot_do) {
  const auto said = [](const Sampler& sampler, std::int64_t consumed, const SampleTurn& turn) {
    return refusal([&] { static_cast<void>(sampler.at(consumed, turn)); }, Kind::usage);
  };
  EXPECT_EQ(said(*sequential_sampler(10), 8, {.global_batch = 4}),
            "data: a step from sample 8 on takes 4 samples, there are 10; build for more samples or use "
            "{data.order=cyclic}");
  EXPECT_EQ(said(*sequential_sampler(10), 0, {.global_batch = 10, .micro_batch = 4, .ranks = 2}),
            "global batch 10 is not a multiple of micro batch 4 times 2 data-parallel ranks");
  EXPECT_EQ(said(*cyclic_sampler(10, Sharding::on), 0, {.global_batch = 4, .owners = Owners::contiguous}),
            "cyclic order: sharded by rank, which no other layout repeats; give {data.sharded_cycles=false}");
  EXPECT_EQ(said(*cyclic_sampler(10, Sharding::on), 3, {.global_batch = 4, .micro_batch = 2, .ranks = 2}),
            "cyclic order: 3 samples consumed, expected whole groups of 4 (micro batch times data-parallel "
            "ranks) within an epoch of 8");
  EXPECT_EQ(said(*cyclic_sampler(3, Sharding::on), 0, {.global_batch = 4, .micro_batch = 4}),
            "cyclic order: 3 samples are less than one batch of 4");
}
