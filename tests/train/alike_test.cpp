// Ranks that somebody started with other flags than the rest.
#include "weft/train/alike.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>

#include "weft/base/error.h"
#include "weft/comm/threads.h"

namespace weft {
namespace {

/// What ranks hear of which the third was asked for something else.
std::set<std::string> heard(const std::function<void(TrainConfig&)>& change) {
  std::set<std::string> out;
  std::mutex mutex;
  run_as_threads(4, [&](Communicator& world) {
    TrainConfig config;
    if (world.rank() == 2) change(config);
    std::string said;
    try {
      must_be_alike(config, world);
    } catch (const Error& e) {
      said = e.what();
    }
    const std::lock_guard lock(mutex);
    out.insert(said);
  });
  return out;
}

using Heard = std::set<std::string>;

TEST(Alike, names_what_a_rank_was_started_with_otherwise) {
  EXPECT_EQ(heard([](TrainConfig& c) { c.rate.peak = 2e-3; }),
            Heard{"ranks 0 and 2 were started for different runs: {rate.peak} is unset for the one and 0.002 "
                  "for the other; give all of them the same flags"});
  EXPECT_EQ(heard([](TrainConfig& c) {
              c.model.layers = 3;
              c.model.heads = 5;
            }),
            Heard{"ranks 0 and 2 were started for different runs: {model.layers} is 0 for the one and 3 for "
                  "the other; give all of them the same flags"});
}

TEST(Alike, names_the_family) {
  EXPECT_EQ(
      heard([](TrainConfig& c) { c.model.kind = "bert"; }),
      Heard{"ranks 0 and 2 were started for different runs: their family is gpt for the one and bert for "
            "the other; give all of them the same flags"});
}

TEST(Alike, lets_a_rank_have_its_own_machine) {
  EXPECT_EQ(heard([](TrainConfig& c) {
              c.run.threads = 7;
              c.run.device = "cuda:1";
              c.data.paths = {"here"};
              c.data.cache = "there";
              c.log.jsonl = "mine";
              c.optimizer.offload.directory = "disk";
            }),
            Heard{""});
}

}  // namespace
}  // namespace weft
