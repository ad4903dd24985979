#include "weft/data/index.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"

using namespace weft;
using namespace weft::data;

namespace {

Packed<std::int32_t> packed(const std::vector<std::int32_t>& lengths) {
  return Packed<std::int32_t>(std::as_bytes(std::span(lengths)));
}

Order order_of(const Json& c) {
  Order order;
  order.sequence_length = c["seq_length"];
  if (!c["num_samples"].is_null()) order.num_samples = c["num_samples"].get<std::int64_t>();
  order.seed = c["seed"];
  order.extra_token = c["add_extra_token"];
  order.last = c["drop_last_partial"] || c["split"] != "valid" ? LastSample::dropped : LastSample::kept;
  return order;
}

// The original's loop, as its text describes it, for comparison with the one that works by positions.
std::vector<std::int32_t> walked(const std::vector<std::int32_t>& lengths,
                                 std::span<const std::int32_t> documents, const Order& order,
                                 std::int64_t rows) {
  std::vector<std::int32_t> out = {0, 0};
  const std::int32_t x = order.extra_token ? 1 : 0;
  std::size_t d = 0;
  std::int32_t offset = 0;
  for (std::int64_t r = 1; r <= rows; ++r) {
    auto rest = static_cast<std::int32_t>(order.sequence_length) + x;
    while (rest != 0) {
      const std::int32_t available = lengths[static_cast<std::size_t>(documents[d])] - offset;
      rest -= available;
      if (rest <= 0) {
        offset += rest + available - x;
        rest = 0;
      } else if (d + 1 == documents.size()) {
        offset = lengths[static_cast<std::size_t>(documents[d])] - x;
        break;
      } else {
        ++d;
        offset = 0;
      }
    }
    out.push_back(static_cast<std::int32_t>(d));
    out.push_back(offset);
  }
  return out;
}

/// Thirty tokens in six documents; samples of 4 tokens, and one more.
const std::vector<std::int32_t> six_documents{3, 7, 5, 1, 9, 5};
Order four_tokens(std::optional<std::int64_t> samples, std::int64_t epochs) {
  return {.sequence_length = 4, .num_samples = samples, .epochs = epochs, .seed = 7};
}

}  // namespace

TEST(Index, is_megatrons_in_every_golden_case) {
  const Json all = golden("gpt_indices");
  for (const Json& c : all["cases"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const Json& sizes = c.contains("doc_sizes") ? c["doc_sizes"] : all["doc_size_sets"]["lens_big (g12,g13)"];
    const auto lengths = sizes.get<std::vector<std::int32_t>>();
    const Range range{c["doc_range"][0], c["doc_range"][1]};
    const std::int64_t tokens = count_tokens(packed(lengths), range, "x");
    EXPECT_EQ(tokens, c["tokens_per_epoch"].get<std::int64_t>());
    const Epochs epochs = plan_epochs(tokens, order_of(c), "x");
    EXPECT_EQ(epochs.count, c["num_epochs"].get<std::int64_t>());
    EXPECT_EQ(epochs.separate_last, c["separate_final_epoch"].get<bool>());
    EXPECT_EQ(epochs.samples, c["len"].get<std::int64_t>());
    const GptIndex index = build_index(packed(lengths), range, order_of(c), epochs);
    EXPECT_EQ(sha256_of(index.documents.values()), c["sha256"]["document_index"]);
    EXPECT_EQ(sha256_of(index.samples.values()), c["sha256"]["sample_index"]);
    EXPECT_EQ(sha256_of(index.shuffle.values()), c["sha256"]["shuffle_index"]);
  }
}

TEST(Index, cuts_samples_where_the_originals_loop_cuts_them) {
  EXPECT_TRUE(rc::check([] {
    const auto lengths = *rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(0, 30));
    Order order{.sequence_length = *rc::gen::inRange(1, 20), .extra_token = *rc::gen::arbitrary<bool>()};
    order.last = *rc::gen::element(LastSample::dropped, LastSample::kept);
    if (*rc::gen::arbitrary<bool>()) order.num_samples = *rc::gen::inRange(1, 300);
    const Range range{0, static_cast<std::int64_t>(lengths.size())};
    const std::int64_t tokens = count_tokens(packed(lengths), range, "x");
    RC_PRE(tokens > order.sequence_length + 1);
    const Epochs epochs = plan_epochs(tokens, order, "x");
    const GptIndex index = build_index(packed(lengths), range, order, epochs);
    const auto expected = walked(lengths, index.documents.values(), order, epochs.samples);
    RC_ASSERT(std::vector<std::int32_t>(index.samples.values().begin(), index.samples.values().end()) ==
              expected);
  }));
}

TEST(Index, says_what_cannot_be_ordered) {
  const Order order{.sequence_length = 8, .num_samples = 3};
  EXPECT_EQ(refusal([&] { plan_epochs(0, order, "wiki train"); }),
            "wiki train: no tokens to make samples of");
  EXPECT_EQ(refusal([&] { plan_epochs(8, {.sequence_length = 8}, "wiki train"); }),
            "wiki train: 8 tokens, a sample takes 9; shorten {model.sequence} or add data");
  EXPECT_EQ(refusal([&] { plan_epochs(8, {.sequence_length = 0}, "wiki train"); }, Kind::usage),
            "wiki train: a sequence length of 0, expected at least 1");
  EXPECT_EQ(
      refusal([&] { plan_epochs(8, {.sequence_length = 8, .num_samples = -1}, "wiki train"); }, Kind::usage),
      "wiki train: -1 samples of 8 tokens asked for, which no data set has");
  EXPECT_EQ(refusal([&] {
              count_tokens(packed({3, -1}), {0, 2}, "wiki");
            }),
            "wiki: a sequence between 0 and 2 has a length below 0; the index is damaged");
  const Order huge{.sequence_length = 1, .num_samples = std::int64_t{1} << 33};
  EXPECT_EQ(refusal(
                [&] {
                  build_index(packed({3}), {0, 1}, huge, plan_epochs(3, huge, "x"));
                },
                Kind::usage),
            "data: an index of 1 documents, 2863311531 epochs and 8589934592 samples, the most is 2147483647 "
            "of each; use "
            "{data.index=keyed}, which needs no index");
}

// (2 · 30 - 1) / 4 samples are in two epochs, 7 in the first of them; four fifths of its 7 are 5.
TEST(Index, is_of_exactly_as_many_epochs_as_are_asked_for) {
  const auto built = [](const Order& order) {
    const Epochs epochs = plan_epochs(30, order, "six");
    return build_index(packed(six_documents), {0, 6}, order, epochs);
  };
  for (const std::int64_t samples : {8, 11, 12, 14}) {  // two epochs, whoever counts them
    const GptIndex natural = built(four_tokens(samples, 0)), exact = built(four_tokens(samples, 2));
    EXPECT_TRUE(std::ranges::equal(natural.documents.values(), exact.documents.values())) << samples;
    EXPECT_TRUE(std::ranges::equal(natural.samples.values(), exact.samples.values())) << samples;
    EXPECT_TRUE(std::ranges::equal(natural.shuffle.values(), exact.shuffle.values())) << samples;
  }
  const Epochs one_of_two = plan_epochs(30, four_tokens(7, 2), "six");  // one would do
  EXPECT_EQ(one_of_two.count, 2);
  EXPECT_EQ(one_of_two.samples, 14);
  EXPECT_TRUE(one_of_two.separate_last);
  const Epochs all = plan_epochs(30, four_tokens({}, 3), "six");
  EXPECT_EQ(all.samples, 22);
  EXPECT_FALSE(all.separate_last);
  EXPECT_EQ(plan_epochs(30, four_tokens(3, 1), "six").samples, 7);
}

TEST(Index, refuses_epochs_that_are_too_few_or_of_which_the_last_is_not_needed) {
  EXPECT_EQ(refusal([] { (void)plan_epochs(30, four_tokens(8, 1), "six"); }, Kind::usage),
            "six: {data.exact_epochs} 1 gives 7 samples, and 8 are asked for: take more epochs, or shorten "
            "the run");
  EXPECT_EQ(refusal([] { (void)plan_epochs(30, four_tokens(6, 2), "six"); }, Kind::usage),
            "six: {data.exact_epochs} 2, and the 6 samples that are asked for are in fewer, 7 without the "
            "last: take fewer epochs");
  EXPECT_EQ(refusal([] { (void)plan_epochs(std::int64_t{1} << 60, four_tokens(6, 9), "six"); }, Kind::usage),
            "six: {data.exact_epochs} 9 of 1152921504606846976 tokens are more than anybody can count");
}
