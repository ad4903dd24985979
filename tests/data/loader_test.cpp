#include "weft/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "tests/data/refusal.h"
#include "weft/data/context_split.h"

using namespace weft;
using namespace weft::data;

namespace {

// Sample i is the four tokens 10 i to 10 i + 3.
class Counting : public Dataset {
 public:
  std::int64_t size() const override { return 1000; }
  void fill(std::int64_t i, Sample& sample) const override {
    ++reads;
    sample.clear();
    const auto first = static_cast<std::int32_t>(10 * i);
    sample[Field::tokens] = {first, first + 1, first + 2, first + 3};
    sample[Field::loss_mask] = {1, 1, 1, 0};
  }
  std::vector<Origin> origins(std::int64_t) const override { return {}; }
  mutable std::atomic<int> reads = 0;
};

std::vector<std::int64_t> numbers(std::span<const HostBatch> step) {
  std::vector<std::int64_t> all;
  for (const HostBatch& batch : step) all.insert(all.end(), batch.samples.begin(), batch.samples.end());
  return all;
}

constexpr SampleTurn turn{.global_batch = 8, .micro_batch = 2, .rank = 1, .ranks = 2};

}  // namespace

TEST(Loader, gives_the_turns_of_a_run_in_order) {
  Loader loader(std::make_shared<Counting>(), sequential_sampler(1000), 0);
  const std::span<const HostBatch> first = loader.next(turn);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(numbers(first), (std::vector<std::int64_t>{2, 3, 6, 7}));
  EXPECT_EQ(first[1][Field::tokens], (std::vector<std::int32_t>{60, 61, 62, 63, 70, 71, 72, 73}));
  EXPECT_EQ(numbers(loader.next(turn)), (std::vector<std::int64_t>{10, 11, 14, 15}));
  EXPECT_EQ(loader.consumed(), 16);
}

TEST(Loader, resumes_from_the_number_of_samples_alone) {
  Loader unbroken(std::make_shared<Counting>(), sequential_sampler(1000), 0);
  for (int i = 0; i < 3; ++i) static_cast<void>(unbroken.next(turn));
  Loader resumed(std::make_shared<Counting>(), sequential_sampler(1000), unbroken.consumed());
  EXPECT_EQ(numbers(unbroken.next(turn)), numbers(resumed.next(turn)));
}

TEST(Loader, follows_a_batch_size_that_grows_and_a_place_that_changes) {
  Loader loader(std::make_shared<Counting>(), sequential_sampler(1000), 0);
  static_cast<void>(loader.next(turn));
  SampleTurn larger = turn;
  larger.global_batch = 16;
  EXPECT_EQ(numbers(loader.next(larger)), (std::vector<std::int64_t>{10, 11, 14, 15, 18, 19, 22, 23}));
  EXPECT_EQ(loader.consumed(), 24);
  loader.seek(0);
  EXPECT_EQ(numbers(loader.next(turn)), (std::vector<std::int64_t>{2, 3, 6, 7}));
}

TEST(Loader, goes_on_after_a_step_that_could_not_be_read) {
  Loader loader(std::make_shared<Counting>(), sequential_sampler(10), 0);
  static_cast<void>(loader.next(turn));
  for (int i = 0; i < 2; ++i) EXPECT_THROW(static_cast<void>(loader.next(turn)), Error);
  EXPECT_EQ(loader.consumed(), 8);
  loader.seek(2);
  EXPECT_EQ(numbers(loader.next(turn)), (std::vector<std::int64_t>{4, 5, 8, 9}));
}

TEST(Loader, fails_only_when_the_step_that_cannot_be_read_is_asked_for) {
  Loader loader(std::make_shared<Counting>(), sequential_sampler(10), 0);
  static_cast<void>(loader.next(turn));
  EXPECT_EQ(refusal([&] { static_cast<void>(loader.next(turn)); }, Kind::usage),
            "data: a step from sample 8 on takes 8 samples, there are 10; build for more samples or use "
            "{data.order=cyclic}");
}

TEST(Loader, says_beforehand_that_a_step_cannot_be_read) {
  Loader loader(std::make_shared<Counting>(), sequential_sampler(20), 0);
  static_cast<void>(loader.next(turn));
  EXPECT_EQ(loader.trouble_ahead(turn), nullptr);
  SampleTurn larger = turn;
  larger.global_batch = 16;
  EXPECT_NE(loader.trouble_ahead(larger), nullptr);
  EXPECT_EQ(loader.consumed(), 8);
  EXPECT_EQ(numbers(loader.next(turn)), (std::vector<std::int64_t>{10, 11, 14, 15}));
  EXPECT_NE(loader.trouble_ahead(turn), nullptr);
  EXPECT_THROW(static_cast<void>(loader.next(turn)), Error);
}

TEST(Loader, reads_a_step_ahead_and_no_more) {
  const auto dataset = std::make_shared<Counting>();
  {
    Loader loader(dataset, sequential_sampler(1000), 0);
    static_cast<void>(loader.next(turn));
  }
  EXPECT_EQ(dataset->reads, 8);
}

namespace {

HostBatch part_of(const HostBatch& batch, const ContextPart& part) {
  HostBatch mine;
  mine[Field::tokens] = {99};  // of another batch
  context_split(batch, part, mine);
  return mine;
}

}  // namespace

TEST(ContextSplit, gives_each_rank_an_early_and_a_late_chunk) {
  HostBatch batch;
  batch.samples = {0, 1};
  batch[Field::tokens] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17};
  batch[Field::truncated] = {0, 1};
  const HostBatch first = part_of(batch, {.rank = 0, .ranks = 2});
  EXPECT_EQ(first[Field::tokens], (std::vector<std::int32_t>{0, 1, 6, 7, 10, 11, 16, 17}));
  EXPECT_EQ(first[Field::truncated], (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(part_of(batch, {.rank = 1, .ranks = 2})[Field::tokens],
            (std::vector<std::int32_t>{2, 3, 4, 5, 12, 13, 14, 15}));
  EXPECT_EQ(refusal([&] { part_of(batch, {.rank = 0, .ranks = 3}); }, Kind::usage),
            "context parallelism: a sequence of 8 tokens is not a multiple of 2 times 3 ranks");
}

TEST(ContextSplit, shares_texts_of_any_length_out_but_for_a_chunk) {
  constexpr int length = 24, ranks = 4, chunk = length / (2 * ranks);
  for (int real = 0; real <= length; ++real) {
    HostBatch batch;
    batch.samples = {0};
    for (int i = 0; i < length; ++i) batch[Field::encoder_mask].push_back(i < real ? 1 : 0);
    std::vector<std::int32_t> of_rank;
    for (int r = 0; r < ranks; ++r) {
      const HostBatch part = part_of(batch, {.rank = r, .ranks = ranks});
      const auto& mask = part[Field::encoder_mask];
      of_rank.push_back(std::accumulate(mask.begin(), mask.end(), 0));
    }
    const auto [least, most] = std::ranges::minmax(of_rank);
    EXPECT_LE(most - least, real == length / 2 ? 0 : chunk) << real << " of " << length << " are text";
  }
}

namespace {

enum class Cut { zigzag, plain };
enum class Sees { those_before_it, all };

struct Load {
  int tokens = 0, pairs = 0;  // of a query and a key that it sees
  bool operator==(const Load&) const = default;
};
void PrintTo(const Load& load, std::ostream* out) { *out << load.tokens << " tokens, " << load.pairs; }

/// What each of two ranks works on, where 24 places hold a text of so many tokens and padding behind it.
std::vector<Load> loads(Cut cut, int text, Sees sees) {
  HostBatch batch;
  batch.samples = {0};
  for (int i = 0; i < 24; ++i) batch[Field::tokens].push_back(i);  // its place
  std::vector<Load> out(2);
  for (int rank : {0, 1}) {
    std::vector<std::int32_t> mine = part_of(batch, {.rank = rank, .ranks = 2})[Field::tokens];
    if (cut == Cut::plain) std::iota(mine.begin(), mine.end(), 12 * rank);
    for (const int place : mine)
      if (place < text) out[std::size_t(rank)].pairs += sees == Sees::all ? text : place + 1;
    out[std::size_t(rank)].tokens = int(std::ranges::count_if(mine, [&](int place) { return place < text; }));
  }
  return out;
}

}  // namespace

// Who sees both ways does not need the zigzag, a padded text does, whoever sees what: so there is one cut.
TEST(ContextSplit, shares_the_work_of_tokens_that_see_both_ways_and_of_those_that_see_one) {
  using Loads = std::vector<Load>;
  EXPECT_EQ(loads(Cut::plain, 24, Sees::those_before_it), (Loads{{12, 78}, {12, 222}}));
  EXPECT_EQ(loads(Cut::zigzag, 24, Sees::those_before_it), (Loads{{12, 150}, {12, 150}}));
  EXPECT_EQ(loads(Cut::plain, 24, Sees::all), (Loads{{12, 288}, {12, 288}}));
  EXPECT_EQ(loads(Cut::zigzag, 24, Sees::all), (Loads{{12, 288}, {12, 288}}));
  EXPECT_EQ(loads(Cut::plain, 12, Sees::all), (Loads{{12, 144}, {0, 0}}));
  EXPECT_EQ(loads(Cut::zigzag, 12, Sees::all), (Loads{{6, 72}, {6, 72}}));
  EXPECT_EQ(loads(Cut::plain, 18, Sees::all), (Loads{{12, 216}, {6, 108}}));
  EXPECT_EQ(loads(Cut::zigzag, 18, Sees::all), (Loads{{6, 108}, {12, 216}}));
}

TEST(Batch, whole_batches_end_with_samples_that_count_nowhere) {
  const auto counting = std::make_shared<Counting>();
  EXPECT_EQ(in_whole_batches(counting, 8), counting);
  const auto whole = in_whole_batches(counting, 48);
  EXPECT_EQ(whole->size(), 1008);
  EXPECT_EQ(whole->get(999)[Field::loss_mask], counting->get(999)[Field::loss_mask]);
  EXPECT_EQ(whole->get(1000)[Field::loss_mask], (std::vector<std::int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(whole->get(1000)[Field::tokens].size(), 4U);
  EXPECT_TRUE(whole->origins(1007).empty());
}
