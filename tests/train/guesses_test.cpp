// What a BERT guesses is a small part of its tokens: training makes no other logits, and is the same.
#include <gtest/gtest.h>

#include "tests/support/tiny.h"
#include "tests/train/tiny_run.h"
#include "weft/train/feed.h"
#include "weft/train/run_data.h"

using namespace weft;
using namespace weft::testing;

namespace {

TrainConfig bert_run() {
  TrainConfig c = tiny_run();
  c.model.kind = "bert";
  c.model.sequence = c.model.max_positions = 32;
  c.model.vocabulary = 64;
  c.data.index = IndexKind::stored;
  return completed(c);
}

struct Seen {
  std::vector<std::int32_t> rows, targets, all_targets;
  std::vector<float> mask, all_mask;
};

Seen read(const Batch& batch) {
  return {to_host<std::int32_t>(batch.guesses.rows), to_host<std::int32_t>(batch.guesses.targets),
          to_host<std::int32_t>(batch.targets), to_host<float>(batch.guesses.mask),
          to_host<float>(batch.mask)};
}

/// The first step's microbatches, of one of so many ranks that share sequences.
std::vector<Seen> fed(const TrainConfig& c, const data::ContextPart& part) {
  const RunData data = open_run_data(c);
  const auto device = open_device("cpu", {.threads = 1});
  const ModelKind kind = kind_of(c.model);
  const auto& set = data.sets[data::Split::train];
  Feed feed(set, run_sampler(c.data, set->size()),
            {.device = *device, .fields = kind.fields, .context = part, .most_guesses = c.model.most_guesses},
            0);
  std::vector<Seen> out;
  for (const Batch& batch : feed.next({.global_batch = 8, .micro_batch = 2})) out.push_back(read(batch));
  return out;
}

}  // namespace

// 15 % of 29 tokens are 4.
TEST(Guesses, are_the_tokens_that_count_and_as_many_in_every_batch) {
  const TrainConfig c = bert_run();
  EXPECT_EQ(c.model.most_guesses, 4);
  for (const data::ContextPart part :
       {data::ContextPart{0, 1}, data::ContextPart{0, 2}, data::ContextPart{1, 2}})
    for (const Seen& batch : fed(c, part)) {
      ASSERT_EQ(batch.rows.size(), 8U);
      std::vector<float> seen(batch.all_mask.size(), 0);
      for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        const auto row = std::size_t(batch.rows[i]);
        EXPECT_EQ(batch.mask[i], batch.all_mask[row]);
        if (batch.mask[i] == 0) continue;
        EXPECT_EQ(batch.targets[i], batch.all_targets[row]);
        seen[row] += 1;
      }
      EXPECT_EQ(seen, batch.all_mask);
    }
}

TEST(Guesses, of_all_tokens_are_made_where_bits_count_and_of_other_families) {
  TrainConfig exact = tiny_run(), gpt = tiny_run();
  exact.model.kind = "bert";
  exact.model.exact = true;
  exact.data.index = IndexKind::stored;
  EXPECT_EQ(completed(exact).model.most_guesses, 0);
  EXPECT_EQ(completed(gpt).model.most_guesses, 0);
}

// f32 sums of other terms beside zeros, in another order.
TEST(Guesses, change_neither_objective_nor_gradients) {
  for (const bool tied : {true, false}) {
    ModelConfig config = tiny_bert();
    config.tied_output = tied;
    const auto device = open_device("cpu", {.threads = 1});
    TinyModel some(config, *device), all(config, *device);
    Batch batch = tiny_batch(*device, config, 3);
    ASSERT_TRUE(batch.guesses.rows);
    const double loss = some.train(batch);
    batch.guesses = {};
    EXPECT_NEAR(loss, all.train(batch), 1e-5);
    const auto found = some.grads(), expected = all.grads();
    for (const auto& [name, grad] : expected)
      for (std::size_t i = 0; i < grad.size(); ++i)
        ASSERT_NEAR(found.at(name)[i], grad[i], 1e-5 * std::max(1.0, std::abs(grad[i]))) << name;
  }
}

TEST(Guesses, train_as_all_tokens_do) {
  const TrainConfig some = bert_run();
  TrainConfig all = some;
  all.model.most_guesses = 0;
  const RunData data = open_run_data(some);
  const Told found = train(some, {.data = &data}), expected = train(all, {.data = &data});
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < found.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], expected.losses[i], 1e-5);
}
