// Training on conversations: what of them a run sees, learns and goes on with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/chat_tokenizer.h"
#include "tests/support/refused.h"
#include "tests/train/tiny_run.h"
#include "weft/base/error.h"

using namespace weft;
using namespace weft::testing;
using data::Field;
using data::Split;
using support::ChatTokenizer;
using support::line_of_messages;
using support::messages_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

const std::vector<std::string> short_talk = {"system", "be", "user", "one?", "assistant", "two"};
const std::vector<std::string> long_talk = {"system",     "be",   "user", "say it",    "assistant",
                                            "that it is", "user", "why?", "assistant", "so"};

std::string packed(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return R"({"messages": [)" + messages_of(a) + ", " + messages_of(b) + "]}\n";
}

/// A tiny run on conversations, with two layers and no dropout.
TrainConfig talking(const ChatTokenizer& files, const std::string& lines) {
  TrainConfig c = tiny_run();
  c.model.sequence = c.model.max_positions = 192;
  c.model.vocabulary = 0;
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.data = {};
  c.data.paths = {files.file("lines.jsonl", lines)};
  c.data.split = "1,0,0";
  c.data.chat.on = true;
  c.data.chat.format = "identity";
  c.data.tokenizer.type = "SFTTokenizer";
  c.data.tokenizer.model = files.folder();
  c.model.vocabulary = files.size();
  c.eval = {.iterations = 0};
  c.rate.warmup_iterations = 0;
  c.batch = {.micro = 1, .global = 1};
  return c;
}

std::vector<double> losses_of(TrainConfig c) { return train(completed(std::move(c))).losses; }

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5 * a[i]) << "step " << i + 1;
}

std::string different_lines() {
  std::string lines;
  for (int i = 0; i < 4; ++i)
    lines +=
        packed({"system", "s", "user", std::string(std::size_t(3 * i + 1), 'q'), "assistant", "odd or even"},
               i % 2 == 0 ? short_talk : long_talk);
  return lines;
}

}  // namespace

// The mean over all answers of a micro batch is the same, whether they stand in one sample or in two.
void expect_packed_as_alone(const std::vector<std::string>& first, const std::vector<std::string>& second,
                            const char* format, int depths) {
  const ChatTokenizer files;
  TrainConfig together = talking(files, packed(first, second));
  together.data.chat.format = format;
  together.data.chat.learned = LearnedWords::answers;
  together.model.ahead = {.depths = depths, .factor = 1};
  const auto of_one = losses_of(together);
  TrainConfig alone = talking(files, line_of_messages(first) + line_of_messages(second));
  alone.data.chat = together.data.chat;
  alone.model.ahead = together.model.ahead;
  alone.batch = {.micro = 2, .global = 2};
  expect_near(losses_of(alone), of_one);
}

TEST(Conversations, packed_train_as_each_alone) {
  for (const char* format : {"identity", "nemotron-h-aligned", "default"})
    expect_packed_as_alone(short_talk, long_talk, format, 0);
}

// The last words of one conversation would else guess the first answer of the next.
TEST(Conversations, packed_guess_further_words_as_each_alone) {
  const std::vector<std::string> first = {"system", "b", "user", "?", "assistant", "two"},
                                 second = {"system", "c", "user", "!", "assistant", "that it is"};
  for (const int depths : {2, 4}) expect_packed_as_alone(first, second, "identity", depths);
}

// Padding and questions of any kind change nothing but what answers look back on.
TEST(Conversations, learn_nothing_of_padding) {
  const ChatTokenizer files;
  TrainConfig wide = talking(files, packed(short_talk, long_talk));
  const auto of_wide = losses_of(wide);
  wide.model.sequence = 64;
  expect_near(losses_of(wide), of_wide);
}

void expect_alike_under_layouts(int depths) {
  const ChatTokenizer files;
  TrainConfig c = talking(files, different_lines());
  c.model.ahead = {.depths = depths, .factor = 1};
  c.batch = {.micro = 1, .global = 4};
  const auto alone = losses_of(c);
  const auto under = [&](auto change) {
    TrainConfig cut = c;
    change(cut.parallel);
    cut.run.ranks = cut.parallel.tp * cut.parallel.pp * cut.parallel.cp * cut.parallel.dp;
    return cut;
  };
  const auto layouts = {
      under([](ParallelConfig& p) { p.tp = 2; }), under([](ParallelConfig& p) { p.cp = 2; }),
      under([](ParallelConfig& p) { p.pp = 2; }), under([](ParallelConfig& p) { p.dp = 2; }),
      under([](ParallelConfig& p) { p.cp = p.dp = 2; })};
  for (const TrainConfig& cut : layouts) expect_near(losses_of(cut), alone);
  c.model.exact = true;
  const auto exact = losses_of(c);
  for (TrainConfig cut : layouts) {
    cut.model.exact = true;
    EXPECT_EQ(losses_of(cut), exact);
  }
}

TEST(Conversations, train_alike_under_every_layout) { expect_alike_under_layouts(0); }

TEST(Conversations, of_which_further_words_are_guessed_train_alike_under_every_layout) {
  expect_alike_under_layouts(2);
}

TEST(Conversations, go_on_from_a_checkpoint_with_the_same_bits) {
  const ChatTokenizer files;
  const support::TemporaryDirectory folder;
  TrainConfig c = talking(files, different_lines());
  c.parallel.dp = c.run.ranks = 2;
  c.batch = {.micro = 1, .global = 2};
  c.data.index = IndexKind::keyed;
  const Told whole = train(completed(c));
  c = saving(c, folder.path());
  c.exit.interval = 3;
  const Told before = train(completed(c));
  c.checkpoint.load = c.checkpoint.save;
  c.exit.interval = 0;
  EXPECT_EQ(joined(before.losses, train(completed(c)).losses), whole.losses);
}

TEST(Conversations, are_read_once_each_by_ranks_that_share_a_batch) {
  const ChatTokenizer files;
  TrainConfig c = talking(files, different_lines());
  c.parallel.dp = c.run.ranks = 2;
  c.batch = {.micro = 1, .global = 4};
  c.length.iterations = 1;
  const auto read = train(completed(c), {.ledger = true}).samples;
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(read.count(i), 1u);
}

TEST(Conversations, are_evaluated) {
  const ChatTokenizer files;
  TrainConfig c = talking(files, different_lines());
  c.data.split = "1,1,0";
  c.eval = {.interval = 3, .iterations = 1};
  const Told run = train(completed(c));
  ASSERT_FALSE(run.validations.empty());
  EXPECT_GT(run.validations.front(), 1);
  c.eval.whole_set = true;
  EXPECT_GT(train(completed(c)).validations.front(), 1);
}

TEST(Conversations, without_an_answer_that_fits_are_steps_of_no_loss) {
  const ChatTokenizer files;
  TrainConfig c = talking(files, line_of_messages({"user", std::string(100, 'q'), "assistant", "a"}));
  c.model.sequence = 16;
  c.length.iterations = 2;
  const Told run = train(completed(c));
  EXPECT_THAT(run.losses, ElementsAre(0, 0));
  const std::string said = "step 1: no token of the batch counts, so its loss is told as 0";
  EXPECT_THAT(run.said, HasSubstr(said));
  EXPECT_THAT(run.said, Not(HasSubstr("step 2: ")));
}

TEST(Conversations, of_which_none_is_learned_have_no_loss_to_evaluate) {
  const ChatTokenizer files;
  TrainConfig c = talking(files, line_of_messages(short_talk) +
                                     line_of_messages({"user", std::string(100, 'q'), "assistant", "a"}));
  c.model.sequence = 64;
  c.data.split = "1,1,0";
  c.eval = {.interval = 3, .iterations = 1};
  const Told run = train(completed(c));
  EXPECT_TRUE(std::isnan(run.validations.at(0)));
  EXPECT_THAT(run.said, HasSubstr("validation at iteration 3: no token counts, so there is no loss"));
}

TEST(Conversations, teach_how_another_one_begins_only_as_megatron_has_it) {
  const ChatTokenizer files;
  TrainConfig c = talking(files, packed(short_talk, long_talk));
  c.data.chat.format = "default";
  const auto counted = [&](LearnedWords learned) {
    c.data.chat.learned = learned;
    const data::Sample sample = open_run_data(completed(c)).sets[Split::train]->get(0);
    return std::ranges::count(sample[Field::loss_mask], 1);
  };
  EXPECT_EQ(counted(LearnedWords::all), counted(LearnedWords::by_format) - 1);
}

TEST(Conversations, end_tokens_that_pad_are_learned_with_answers_and_not_with_all) {
  const ChatTokenizer files(ChatTokenizer::usual_template, R"("eos_token": "<|im_end|>")");
  TrainConfig c = talking(files, line_of_messages({"user", "q", "assistant", "a"}));
  c.data.chat.format = "default";
  const auto counted = [&](LearnedWords learned) {
    c.data.chat.learned = learned;
    const data::Sample sample = open_run_data(completed(c)).sets[Split::train]->get(0);
    return std::ranges::count(sample[Field::loss_mask], 1);
  };
  EXPECT_EQ(counted(LearnedWords::answers), 3);  // a letter, the end, and the end of the line
  const auto all = counted(LearnedWords::all);
  EXPECT_EQ(all, counted(LearnedWords::by_format));
  EXPECT_EQ(all, 9 + 14 - 1 - 2);  // all but the first token, and not the two that end messages
}

TEST(Conversations, have_a_line_each_where_a_model_does_not_part_them) {
  const ChatTokenizer files;
  TrainConfig c = talking(files, line_of_messages(short_talk));
  c.model.delta.on = true;
  const data::Sample sample = open_run_data(c).sets[Split::train]->get(0);
  EXPECT_FALSE(sample.has(Field::documents));
  c.data.paths = {files.file("packed.jsonl", packed(short_talk, long_talk))};
  EXPECT_THAT([&] { (void)open_run_data(c).sets[Split::train]->get(0); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("holds 2 conversations")));
}

TEST(Conversations, refuse_what_goes_by_documents) {
  const ChatTokenizer files;
  const auto refused = [&](void (*change)(TrainConfig&), const std::string& why) {
    TrainConfig c = talking(files, line_of_messages(short_talk));
    change(c);
    EXPECT_THAT([&] { (void)completed(c); }, ::testing::ThrowsMessage<Error>(why));
  };
  const std::string reads =
      ", and {data.chat.on} reads a line of conversations a sample: leave one of them out";
  refused([](TrainConfig& c) { c.data.reset_positions = true; },
          "{data.reset_positions} goes by end-of-document tokens" + reads);
  refused([](TrainConfig& c) { c.data.reset_attention = true; },
          "{data.reset_attention} goes by end-of-document tokens" + reads);
  refused([](TrainConfig& c) { c.data.mask_eod_loss = true; },
          "{data.mask_eod_loss} goes by end-of-document tokens" + reads);
  refused([](TrainConfig& c) { c.data.partial_validation = true; },
          "{data.partial_validation} pads a last window on documents" + reads);
  refused([](TrainConfig& c) { c.data.exact_epochs = 1; },
          "{data.exact_epochs} counts epochs of documents" + reads);
  refused([](TrainConfig& c) { c.data.fim.on = true; }, "{data.fim.on} cuts documents" + reads);
  refused([](TrainConfig& c) { c.data.chat.format = "chatml"; },
          "{data.chat.format} chatml: expected nemotron-h-aligned, nemotron-nano-v2, identity, default");
  refused([](TrainConfig& c) { c.data.tokenizer.type = "NullTokenizer"; },
          "{data.chat.on} reads conversations by a tokenizer of Hugging Face's, found {data.tokenizer.type} "
          "NullTokenizer: give {data.tokenizer.type=SFTTokenizer} and {data.tokenizer.model}, its directory");
  refused(
      [](TrainConfig& c) {
        c.data.paths.clear();
        c.data.split.clear();
        c.data.mock = true;
      },
      "{data.mock}: no conversations are made up for {data.chat.on}: give {data.paths}");
  refused([](TrainConfig& c) { c.model.kind = "bert"; },
          "{data.chat.on} teaches a model to go on from a text, and one of the family bert guesses hidden "
          "words: leave it out");
}
