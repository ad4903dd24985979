// Feeds look ahead for guesses of tokens beyond the next one: as far as the sample, or the document, reaches.
#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"
#include "weft/train/feed.h"
#include "weft/train/run_data.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::int64_t steps = 512;  // longer than made-up documents
constexpr int depths = 3;

TrainConfig looking_ahead(bool between_documents) {
  TrainConfig c = tiny_run();
  c.model.sequence = c.model.max_positions = steps;
  c.model.ahead.depths = depths;
  (between_documents ? c.data.between_documents : c.data.reset_attention) = true;
  return completed(c);
}

/// The first microbatch of two samples, or a context-parallel rank's part of it.
Batch read(Device& device, const TrainConfig& c, const data::ContextPart& part) {
  const RunData data = open_run_data(c);
  const auto& set = data.sets[data::Split::train];
  SoloCommunicator solo;
  const ProcessMesh mesh(layout_of(c.parallel), solo);
  Replica replica(replica_config(c), {device, mesh});
  Feed::Intake place = place_of(replica, c.data);
  place.context = part;
  Feed feed(set, run_sampler(c.data, set->size()), place, 0);
  return feed.next({.global_batch = 2, .micro_batch = 2})[0];
}

struct Row {
  std::vector<double> here, ahead;  // [s, b]
};

std::vector<Row> rows_of(const Batch& batch, int depth) {
  const Further& further = batch.further[std::size_t(depth) - 1];
  return {{numbers(batch.text.tokens), numbers(further.tokens)},
          {numbers(batch.text.positions), numbers(further.positions)},
          {numbers(batch.targets), numbers(further.targets)},
          {numbers(batch.mask), numbers(further.mask)}};
}

/// The first that is not what stands so far on, and how often text ends there.
std::string difference(const Batch& batch, int depth, bool in_documents, int& ends) {
  const std::vector<double> segments = numbers(batch.text.segments);
  for (const Row& row : rows_of(batch, depth))
    for (std::int64_t i = 0; i < steps; ++i)
      for (std::int64_t b = 0; b < 2; ++b) {
        const std::int64_t on = i + depth;
        const bool parted =
            on < steps && segments[std::size_t(b * steps + i)] != segments[std::size_t(b * steps + on)];
        const bool reaches = on < steps && !(in_documents && parted);
        ends += parted;
        const double wanted = reaches ? row.here[std::size_t(2 * on + b)] : 0;
        if (row.ahead[std::size_t(2 * i + b)] != wanted)
          return "depth " + std::to_string(depth) + " place " + std::to_string(i);
      }
  return "";
}

}  // namespace

TEST(FurtherWords, are_looked_up_in_the_same_document_where_the_data_part_them) {
  const auto device = open_device("cpu", {.threads = 1});
  for (const bool in_documents : {true, false}) {
    const Batch batch = read(*device, looking_ahead(in_documents), {});
    ASSERT_EQ(batch.further.size(), std::size_t(depths));
    int ends = 0;
    for (int depth = 1; depth <= depths; ++depth) {
      EXPECT_EQ(difference(batch, depth, in_documents, ends), "") << in_documents;
      const auto counts = numbers(batch.further[std::size_t(depth) - 1].mask);
      EXPECT_EQ(batch.further[std::size_t(depth) - 1].counted,
                std::accumulate(counts.begin(), counts.end(), 0.0));
    }
    EXPECT_GT(ends, 0);
  }
}

TEST(FurtherWords, are_those_of_whole_sequences_where_ranks_share_these) {
  const auto device = open_device("cpu", {.threads = 1});
  const TrainConfig c = looking_ahead(true);
  const Batch whole = read(*device, c, {});
  for (int rank = 0; rank < 2; ++rank) {
    const Batch part = read(*device, c, {.rank = rank, .ranks = 2});
    const std::vector<double> places = numbers(part.text.places);
    for (std::size_t k = 0; k < depths; ++k) {
      EXPECT_EQ(part.further[k].counted, whole.further[k].counted);
      const auto all = numbers(whole.further[k].tokens), here = numbers(part.further[k].tokens);
      for (std::size_t i = 0; i < here.size(); ++i)
        ASSERT_EQ(here[i], all[std::size_t(places[i / 2]) * 2 + i % 2])
            << "rank " << rank << " place " << i / 2;
    }
  }
}
