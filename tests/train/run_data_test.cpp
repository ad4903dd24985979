// From a configuration to data sets: each setting of the data reaches the samples.
#include "weft/train/run_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "tests/support/chat_tokenizer.h"
#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/data/token_writer.h"
#include "weft/train/settings.h"
#include "weft/train/validate.h"

using namespace weft;
using data::Field;
using data::Split;
using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

namespace {

// Documents of `length` tokens that count from 1 and end with 99.
std::string documents(const std::string& name, int count, int length) {
  const std::string prefix = (std::filesystem::path(::testing::TempDir()) / ("run_data_" + name)).string();
  std::filesystem::remove_all(prefix);  // the cache that an earlier test left
  data::TokenWriter writer(prefix, {.type = data::TokenType::u16});
  for (int d = 0; d < count; ++d) {
    std::vector<std::int32_t> tokens;
    for (int i = 1; i < length; ++i) tokens.push_back(i);
    tokens.push_back(99);
    writer.add_document(tokens, std::vector<std::int32_t>{length});
  }
  writer.finish();
  return prefix;
}

TrainConfig config_for(std::vector<std::string> paths) {
  TrainConfig c;
  c.model.layers = 1;
  c.model.hidden = 16;
  c.model.heads = 2;
  c.model.sequence = 8;
  c.model.vocabulary = 100;
  c.batch.micro = 1;
  c.length.iterations = 2;
  c.rate.peak = 1e-3;
  c.data.paths = std::move(paths);
  c.data.split = "60,40,0";
  c.data.tokenizer.type = "NullTokenizer";
  return c;
}

RunData opened(TrainConfig c) {
  complete(c, 1);
  return open_run_data(c);
}

auto refusal(const TrainConfig& c) {
  return [c] { (void)opened(c); };
}

}  // namespace

TEST(RunData, positions_begin_anew_with_each_document_of_the_data) {
  TrainConfig c = config_for({documents("between", 20, 5)});
  c.data.between_documents = true;
  const data::Sample sample = opened(c).sets[Split::train]->get(0);
  const auto& positions = sample[Field::positions];
  ASSERT_TRUE(sample.has(Field::documents));
  for (std::size_t i = 1; i < positions.size(); ++i)
    EXPECT_EQ(positions[i], sample[Field::tokens][i - 1] == 99 ? 0 : positions[i - 1] + 1);
}

// A directory of Hugging Face may name tokens that its model has no rows for.
TEST(RunData, knows_the_models_words_where_its_tokenizer_has_more) {
  TrainConfig c = config_for({documents("fewer", 10, 20)});
  const std::string text = WEFT_SOURCE_DIR "/tests/golden/text/";
  c.data.tokenizer = {.type = "GPT2BPETokenizer",
                      .vocab_file = text + "toy_bpe_vocab.json",
                      .merge_file = text + "toy_bpe_merges.txt"};
  EXPECT_EQ(opened(c).sets[Split::train]->get(0)[Field::tokens].size(), 8U);
  c.model.vocabulary = 2;
  EXPECT_THAT([&] { (void)opened(c).sets[Split::train]->get(0); },
              ThrowsMessage<Error>(::testing::HasSubstr(", the vocabulary has 2 tokens")));
}

TEST(RunData, pads_conversations_with_what_the_model_knows) {
  const support::ChatTokenizer files;
  TrainConfig c = config_for({});
  c.data.tokenizer = {.type = "SFTTokenizer", .model = files.folder()};
  c.data.chat = {.on = true, .format = "default", .learned = LearnedWords::all};
  const data::ConversationRules whole = conversation_rules(c.model, c.data);
  EXPECT_FALSE(whole.pad_is_learned);
  ASSERT_GT(whole.pad, 0);
  c.model.vocabulary = whole.pad;
  const data::ConversationRules cut = conversation_rules(c.model, c.data);
  EXPECT_EQ(cut.pad, 0);
  EXPECT_TRUE(cut.pad_is_learned);  // a word like any other: what fills up is never learned
  EXPECT_EQ(cut.vocabulary, whole.pad);
}

TEST(RunData, the_last_validation_sample_is_kept_and_padded_where_asked) {
  TrainConfig c =
      config_for({documents("partial", 10, 5)});  // 20 tokens to validate on: 2 samples and 3 left
  c.eval.whole_set = true;
  EXPECT_EQ(opened(c).sets[Split::valid]->size(), 2);
  c.data.partial_validation = true;
  c.data.paths = {documents("partial_kept", 10, 5)};
  const auto valid = opened(c).sets[Split::valid];
  ASSERT_EQ(valid->size(), 3);
  int counting = 0;
  for (int i = 0; i < 3; ++i) {
    const data::Sample sample = valid->get(i);
    counting += std::accumulate(sample[Field::loss_mask].begin(), sample[Field::loss_mask].end(), 0);
  }
  EXPECT_EQ(counting, 19);
}

TEST(RunData, validation_sets_are_one_or_several) {
  const std::vector<std::string> paths{documents("one", 20, 5), documents("two", 20, 5)};
  TrainConfig c = config_for(paths);
  c.eval.interval = 1;
  c.eval.iterations = 1;
  EXPECT_EQ(opened(c).sets.of[std::size_t(Split::valid)].size(), 1u);
  c.data.separate_validation = true;
  EXPECT_EQ(opened(c).sets.of[std::size_t(Split::valid)].size(), 2u);
  c.data.validation_names = {"web"};
  EXPECT_THAT(refusal(c),
              ThrowsMessage<Error>("{data.validation_names} gives 1 names for 2 validation sets"));
}

TEST(RunData, cycles_are_sharded_by_rank_unless_told_not_to) {
  TrainConfig c = config_for({});
  c.data.order = SampleOrder::cyclic;
  const data::SampleTurn second{.global_batch = 2, .micro_batch = 1, .rank = 1, .ranks = 2};
  const auto of_second = [&] { return run_sampler(c.data, 8)->at(0, second).at(0); };
  EXPECT_GE(of_second(), 4);  // the second half is the second rank's
  c.data.sharded_cycles = false;
  std::vector<std::int64_t> seen;
  for (int rank = 0; rank < 2; ++rank)
    for (std::int64_t consumed = 0; consumed < 8; consumed += 2)
      seen.push_back(run_sampler(c.data, 8)->at(
          consumed, {.global_batch = 2, .micro_batch = 1, .rank = rank, .ranks = 2})[0]);
  EXPECT_LT(*std::min_element(seen.begin() + 4, seen.end()), 4);
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(RunData, tokenizer_settings_reach_the_tokenizer) {
  TrainConfig c = config_for({});
  c.data.tokenizer.eod_id = 3;
  EXPECT_EQ(run_tokenizer(c.data.tokenizer, c.model.vocabulary)->special("eod"), 3);
  c.data.tokenizer.special = {"<a>"};
  EXPECT_THAT(
      [&] { (void)run_tokenizer(c.data.tokenizer, c.model.vocabulary); },
      ThrowsMessage<Error>("NullTokenizer takes no {tokenizer_special_tokens}: its tokens are numbers"));
  c.data.tokenizer.special = {};
  c.data.tokenizer.pattern = "v1";
  EXPECT_THAT(unread_tokenizer_settings(c.data.tokenizer, c.model.vocabulary),
              ElementsAre("no effect here: {tiktoken_pattern} (NullTokenizer does not read it)"));
}

// Llama's tokenizers pad with the token of unknown words, GPT-NeoX' with that which ends texts.
TEST(RunData, padding_may_be_any_token_but_one_that_ends_texts) {
  const auto learned = [](const char* pad) {
    const support::ChatTokenizer words(
        "", std::string(R"("eos_token": "<|im_end|>", "unk_token": "<unk>", "pad_token": ")") + pad + "\"");
    TrainConfig c = config_for({documents("padded", 20, 99)});  // of tokens from 1 to 99
    c.model.vocabulary = 0;
    c.data.tokenizer.type = "HuggingFaceTokenizer";
    c.data.tokenizer.model = words.folder();
    c.model.sequence = 400;
    const data::Sample sample = opened(c).sets[Split::train]->get(0);
    return std::ranges::count(sample[Field::loss_mask], 1);
  };
  const auto unk = learned("<unk>"), end = learned("<|im_end|>");
  EXPECT_EQ(end, 400);
  EXPECT_LT(unk, 400);
}

// 61 samples are 15 steps of 4; by batches of 8, from the 28th sample on, 60 are read, not the 56 of 7 steps.
TEST(RunData, has_as_many_samples_as_a_run_is_to_read_whatever_the_batch) {
  TrainConfig c = config_for({documents("asked", 20, 50)});
  c.length = {.samples = 61};
  c.batch.global = 8;
  const auto described = [&] {
    const auto folder = std::filesystem::path(c.data.paths[0]) / "cache/GPTDataset_indices";
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(folder))
      if (file.path().string().ends_with("train-description.txt")) all += read_file(file.path());
    return all;
  };
  EXPECT_GE(opened(c).sets[Split::train]->size(), 61);
  EXPECT_THAT(described(), ::testing::HasSubstr("\"num_samples\": 61,"));
}

// `weft data` asks nobody how large the model's vocabulary is.
TEST(RunData, knows_as_many_words_as_the_tokenizer_where_no_model_says) {
  TrainConfig c = config_for({});
  c.model.vocabulary = 0;
  c.data.mock = true;
  c.data.tokenizer.type = "ByteLevelTokenizer";
  EXPECT_EQ(opened(c).sets[Split::train]->get(0)[Field::tokens].size(), 8U);
  c.data.mock = false;
  c.data.paths = {documents("high", 20, 1000)};
  c.model.sequence = 600;
  EXPECT_THAT(
      [&] { (void)opened(c).sets[Split::train]->get(0); },
      ThrowsMessage<Error>(::testing::ContainsRegex("the vocabulary has 512 tokens; was the data made")));
}

TEST(RunData, refuses_a_part_without_documents_and_a_vocabulary_beyond_the_files_type) {
  TrainConfig c = config_for({documents("empty", 1, 50)});
  c.eval.interval = 1;
  EXPECT_THAT(refusal(c), ThrowsMessage<Error>(c.data.paths[0] +
                                               " valid: none of 1 documents fall to this split, but 300 "
                                               "samples are asked of it; change {data.split}"));
  c.model.vocabulary = 70000;
  EXPECT_THAT(
      refusal(c),
      ThrowsMessage<Error>(c.data.paths[0] + ": tokens of type u16 hold ids up to 65535, the vocabulary has "
                                             "70000; the data was made with another tokenizer"));
}

TEST(RunData, refuses_data_that_do_not_fill_one_sequence) {
  TrainConfig c = config_for({documents("short", 10, 5)});
  c.model.sequence = 64;
  c.eval.whole_set = true;
  EXPECT_THAT(refusal(c),
              ThrowsMessage<Error>(c.data.paths[0] + " valid: 20 tokens, a sample takes 65; shorten "
                                                     "{model.sequence} or add data"));
}

// Six documents of ten tokens train: an epoch is (60 - 1) / 8 samples.
TEST(RunData, is_of_exactly_as_many_epochs_as_are_asked_for) {
  TrainConfig c = config_for({documents("epochs", 10, 10)});
  c.eval.whole_set = true;
  for (const auto index : {IndexKind::stored, IndexKind::keyed}) {
    c.data.index = index;
    c.data.exact_epochs = 1;
    EXPECT_EQ(opened(c).sets[Split::train]->size(), 7);
    EXPECT_EQ(opened(c).sets[Split::valid]->size(), 4);  // (40 - 1) / 8: only training has so many
    c.length.iterations = 8;
    EXPECT_THAT(refusal(c), ThrowsMessage<Error>(
                                ::testing::HasSubstr("{data.exact_epochs} 1 gives 7 samples, and 8 are asked "
                                                     "for: take more epochs, or shorten the run")));
    c.data.exact_epochs = 2;
    EXPECT_EQ(opened(c).sets[Split::train]->size(), 14);
    c.length.iterations = 2;
  }
  c.data.index = IndexKind::stored;
  c.data.exact_epochs = 1;
  c.length.iterations = 50;
  c.data.order = SampleOrder::cyclic;
  EXPECT_EQ(opened(c).sets[Split::train]->size(), 7);  // shuffled again and again
  c.data.order = SampleOrder::single;
  c.data.paths = {"0.5", documents("epochs_a", 10, 10), "0.5", documents("epochs_b", 10, 10)};
  EXPECT_THAT(refusal(c),
              ThrowsMessage<Error>(::testing::HasSubstr("{data.exact_epochs} 1 gives 7 samples")));
  c.data.index = IndexKind::keyed;
  EXPECT_THAT(refusal(c), ThrowsMessage<Error>(::testing::HasSubstr(
                              "blend: {data.exact_epochs} 1 of several files needs an order that ends: take "
                              "{data.index=stored}")));
}
