#include "weft/data/keyed.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"

using namespace weft;
using namespace weft::data;

namespace {

std::vector<std::uint64_t> whole(std::uint64_t size, const KeyedPermutation::Key& key) {
  const KeyedPermutation order(size, key);
  std::vector<std::uint64_t> places(size);
  for (std::uint64_t i = 0; i < size; ++i) places[i] = order(i);
  return places;
}

std::vector<Piece> pieces_of(const Composition& composition, std::int64_t i) {
  std::vector<Piece> pieces;
  composition.pieces(i, pieces);
  return pieces;
}

}  // namespace

TEST(KeyedPermutation, meets_every_element_once) {
  for (std::uint64_t size = 1; size < 400; ++size) {
    auto places = whole(size, {.seed = 1234, .stream = size});
    std::sort(places.begin(), places.end());
    for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(places[i], i) << size;
  }
}

// Runs that were saved depend on these values.
TEST(KeyedPermutation, never_changes) {
  EXPECT_EQ(whole(10, {.seed = 1234}), (std::vector<std::uint64_t>{2, 5, 8, 4, 9, 7, 1, 0, 6, 3}));
  const KeyedPermutation far(1000000000000, {.seed = 7, .stream = 1, .epoch = 2});
  EXPECT_EQ(far(0), 93355196710U);
  EXPECT_EQ(far(999999999999), 277960641485U);
}

TEST(KeyedPermutation, looks_random) {
  constexpr std::uint64_t size = 100000;
  const auto places = whole(size, {.seed = 5});
  // Chi squared of the first tenth over ten equal bins: 9 degrees of freedom, 33.7 is passed once in 10,000
  // times.
  std::vector<double> bins(10, 0.0);
  for (std::size_t i = 0; i < size / 10; ++i) bins[places[i] * 10 / size] += 1;
  double chi = 0;
  for (const double count : bins) chi += (count - 1000) * (count - 1000) / (1000 * 0.9);
  EXPECT_LT(chi, 33.7);
  // Neighbors end up far apart: the mean distance of two random places is a third of the size; its error here
  // is about 0.2 %.
  double distance = 0;
  for (std::size_t i = 1; i < size; ++i)
    distance += std::abs(static_cast<double>(places[i]) - static_cast<double>(places[i - 1]));
  EXPECT_NEAR(distance / size / size, 1.0 / 3, 0.005);
  // A random permutation keeps one element in place on average.
  std::uint64_t fixed = 0;
  for (std::size_t i = 0; i < size; ++i) fixed += places[i] == i;
  EXPECT_LT(fixed, 8U);
}

TEST(KeyedPermutation, is_another_one_for_every_key) {
  const auto one = whole(1000, {.seed = 1});
  for (const auto& key :
       {KeyedPermutation::Key{.seed = 2}, {.seed = 1, .stream = 1}, {.seed = 1, .epoch = 1}}) {
    const auto other = whole(1000, key);
    std::size_t equal = 0;
    for (std::size_t i = 0; i < 1000; ++i) equal += one[i] == other[i];
    EXPECT_LT(equal, 10U);
  }
}

TEST(KeyedOrder, reads_every_token_of_an_epoch_once) {
  const auto source = mock_source(5000, 4999);
  const Range range{100, 160};
  const Order order{.sequence_length = 64, .num_samples = 100000};
  const auto composition = keyed_composition(source, range, order);
  const std::int64_t first = source->tokens_before(100);
  const std::int64_t tokens = source->tokens_before(160) - first;
  const std::int64_t per_epoch = (tokens - 1) / 64;
  for (const std::int64_t epoch : {0, 1, 7}) {
    std::vector<int> seen(static_cast<std::size_t>(tokens), 0);
    for (std::int64_t i = 0; i < per_epoch; ++i) {
      std::int64_t count = 0;
      for (const Piece& piece : pieces_of(*composition, epoch * per_epoch + i)) {
        for (std::int64_t k = 0; k < piece.count; ++k, ++count) {
          if (count < 64)
            ++seen[static_cast<std::size_t>(source->tokens_before(piece.sequence) + piece.from + k - first)];
        }
      }
      ASSERT_EQ(count, 65);
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), per_epoch * 64);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), tokens - per_epoch * 64);
  }
}

TEST(KeyedOrder, walks_over_empty_documents) {
  class Few : public Source {
   public:
    const std::string& name() const override { return name_; }
    Packed<std::int32_t> lengths() const override {
      return Packed<std::int32_t>(std::as_bytes(std::span(lengths_)));
    }
    std::int64_t length(std::int64_t i) const override { return lengths_[static_cast<std::size_t>(i)]; }
    void read(std::int64_t, std::int64_t, std::span<std::int32_t>) const override {}
    std::int64_t tokens_before(std::int64_t i) const override {
      return std::accumulate(lengths_.begin(), lengths_.begin() + i, std::int64_t{0});
    }

   private:
    std::string name_ = "few";
    std::vector<std::int32_t> lengths_ = {0, 3, 0, 0, 4, 2, 0};
  };
  const auto composition = keyed_composition(std::make_shared<Few>(), {0, 7}, {.sequence_length = 8});
  const auto pieces = pieces_of(*composition, 0);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].sequence, 1);
  EXPECT_EQ(pieces[1].sequence, 4);
  EXPECT_EQ(pieces[2].sequence, 5);
  EXPECT_EQ(refusal(
                [] {
                  keyed_composition(std::make_shared<Few>(), {0, 7},
                                    {.sequence_length = 8, .last = LastSample::kept});
                },
                Kind::usage),
            "{data.index=keyed}: every sample is whole; {data.partial_validation} needs "
            "{data.index=stored}");
}

TEST(KeyedBlend, shares_every_block_out_by_weight) {
  EXPECT_EQ(KeyedBlend::places(std::vector<double>{1, 1}), (std::vector<std::int64_t>{32768, 32768}));
  EXPECT_EQ(KeyedBlend::places(std::vector<double>{1, 1, 1}),
            (std::vector<std::int64_t>{21846, 21845, 21845}));
  EXPECT_EQ(KeyedBlend::places(std::vector<double>{1e-9, 1}), (std::vector<std::int64_t>{1, 65535}));
}

TEST(KeyedBlend, takes_each_members_samples_in_turn_and_none_twice) {
  class Numbers : public Dataset {
   public:
    Numbers(std::int32_t first, std::int64_t size) : first_(first), size_(size) {}
    std::int64_t size() const override { return size_; }
    void fill(std::int64_t i, Sample& sample) const override {
      sample[Field::tokens] = {first_ + static_cast<std::int32_t>(i)};
    }
    std::vector<Origin> origins(std::int64_t) const override { return {}; }

   private:
    std::int32_t first_;
    std::int64_t size_;
  };
  const std::vector<double> weights = {0.3, 0.7};
  const std::int64_t size = 2 * KeyedBlend::block;
  std::vector<std::shared_ptr<const Dataset>> members;
  for (const int i : {0, 1})
    members.push_back(std::make_shared<Numbers>(
        i * 1000000, KeyedBlend::needed(KeyedBlend::places(weights)[static_cast<std::size_t>(i)], size)));
  const KeyedBlend blend(members, weights, size, 1234);
  std::vector<std::int32_t> seen;
  for (std::int64_t i = 0; i < size; ++i) seen.push_back(blend.get(i)[Field::tokens][0]);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  const auto second = std::lower_bound(seen.begin(), seen.end(), 1000000);
  EXPECT_EQ(second - seen.begin(), members[0]->size());
  EXPECT_EQ(*(second - 1), members[0]->size() - 1);
  EXPECT_EQ(seen.back() - 1000000, members[1]->size() - 1);
}
