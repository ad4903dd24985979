// A model of two stacks reads a text and says another: what its decoder starts with, what ends it, and the
// same words under every layout.
#include <gtest/gtest.h>

#include "tests/generate/words.h"
#include "tests/support/refused.h"
#include "weft/generate/continue.h"
#include "weft/ops/elementwise.h"

using namespace weft;
using namespace weft::testing;

namespace {

const LetterWords plain(29, {{"pad", 0}, {"eos", 28}});

Wish greedy(const std::string& prompt) {
  return {.prompt = prompt, .tokens = 6, .choice = {.temperature = 0}, .ends = {}};
}

std::string answered(Alone& model, const Wish& wish, const Tokenizer& tokenizer = plain) {
  return continue_text({model.here(), tokenizer}, wish);
}

std::vector<StagePart> all(const ModelConfig& c) { return {{0, c.layers + c.decoder_layers}}; }

}  // namespace

// The border between the stacks within a stage, between two, and every piece on its own; lengths that ranks
// cannot share are filled up with padding.
TEST(Answer, is_the_same_under_every_layout) {
  for (const Positions positions : {Positions::relative, Positions::learned}) {
    ModelConfig config = tiny_t5();
    config.positions = positions;
    Alone alone(config);
    const std::string wanted = answered(alone, greedy("DBCHE"));
    ASSERT_EQ(wanted.size(), 6U);
    const std::vector<StagePart> two{{0, 1, true, false}, {1, 3, false, true}};
    const std::vector<StagePart> five{{0, 0, true, false},
                                      {0, 2, false, false},
                                      {2, 1, false, false},
                                      {3, 1, false, false},
                                      {4, 0, false, true}};
    for (const CutModel& cut :
         {CutModel{{.tp = 2}, all(config)}, CutModel{{.pp = 2}, two},
          CutModel{{.tp = 2, .pp = 2}, five, Between::sequence_cut}, CutModel{{.cp = 2}, all(config)}})
      for (const std::string& found : said_by_ranks<std::string>(config, cut, [](const ModelHere& model) {
             return continue_text({model, plain}, greedy("DBCHE"));
           }))
        EXPECT_EQ(found, wanted);
  }
}

// Later words find what the decoder's layers made of the prompt, wherever stages end: as near as a word that
// is read by itself is to one among others.
TEST(Answer, reads_the_prompt_once_and_says_what_it_would_say_after_another_reading) {
  const ModelConfig config = tiny_t5();
  const std::vector<std::int32_t> source{3, 1, 2, 7, 4}, text{0, 5, 6};
  const std::vector<StagePart> three{{0, 1, true, false}, {1, 2, false, false}, {3, 1, false, true}};
  for (const CutModel& cut : {CutModel{{}, all(config)}, CutModel{{.tp = 2}, all(config)},
                              CutModel{{.pp = 3}, three}, CutModel{{.cp = 2}, all(config)}})
    said_by_ranks<int>(config, cut, [&](const ModelHere& model) {
      TextReader reader(model);
      (void)reader.logits(std::span(text).first(1), 1, std::vector<std::int32_t>{9, 9});
      (void)reader.logits(std::span(text).first(1), 1, source);
      for (const std::size_t length : {std::size_t{2}, std::size_t{3}}) {
        const auto found = reader.logits(std::span(text).first(length), 1, source),
                   wanted = TextReader(model).logits(std::span(text).first(length), 1, source);
        for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6);
      }
      return 0;
    });
}

TEST(Answer, goes_through_the_encoder_again_for_another_prompt_only) {
  Alone model(tiny_t5());
  const std::vector<std::int32_t> text{0}, source{3, 1, 2}, other{3, 1, 4};
  TextReader reader(model.here());
  const auto before = reader.logits(text, 1, source);
  model.model.stage().each_parameter([](Parameter& p) {
    if (p.name.starts_with("encoder.")) ops::fill(p.value, 0);
  });
  EXPECT_EQ(reader.logits(text, 1, source), before);
  const auto without = reader.logits(text, 1, other);
  EXPECT_EQ(reader.logits(text, 1, source), without);  // of an encoder that says nothing any more
  EXPECT_NE(without, before);
}

TEST(Answer, depends_on_the_whole_prompt) {
  Alone model(tiny_t5());
  const auto first = [&](const std::vector<std::int32_t>& source) {
    return TextReader(model.here()).logits(std::vector<std::int32_t>{0}, 1, source);
  };
  EXPECT_NE(first({1, 2, 3}), first({1, 2, 4}));
  EXPECT_NE(first({1, 2, 3}), first({2, 2, 3}));
}

TEST(Answer, starts_as_the_model_says_or_else_the_tokenizer) {
  Alone model(tiny_t5());
  const LetterWords begins(29, {{"bos", 5}, {"pad", 0}});
  Wish told = greedy("DBC");
  told.tokens = 8;
  told.choice.temperature = 3;  // so that a small difference of logits shows
  Wish five = told, padding = told;
  five.start = 5;
  padding.start = 0;
  EXPECT_EQ(answered(model, told, begins), answered(model, five));
  EXPECT_EQ(answered(model, told, plain), answered(model, padding));
  EXPECT_NE(answered(model, five), answered(model, padding));
}

TEST(Answer, ends_at_the_tokenizers_end_or_where_the_decoder_does) {
  Alone model(tiny_t5());
  const std::string said = answered(model, greedy("DBCHE"));
  const LetterWords ends(29, {{"pad", 0}, {"eos", said[0] - 'A'}});
  EXPECT_EQ(answered(model, greedy("DBCHE"), ends), "");
  Wish long_one = greedy("DBCHE");
  long_one.tokens = 100;
  EXPECT_EQ(std::ssize(answered(model, long_one)), model.config.decoder_sequence);
}

TEST(Answer, a_prompt_is_closed_once) {
  Alone model(tiny_t5());
  Wish open = greedy("DBC"), closed = greedy("DBCZ");
  open.closes = closed.closes = 25;
  EXPECT_EQ(answered(model, open), answered(model, closed));
  EXPECT_EQ(answered(model, open), answered(model, greedy("DBCZ")));
}

TEST(Answer, says_what_does_not_fit) {
  Alone model(tiny_t5());
  EXPECT_EQ(refused([&] { answered(model, greedy("ABCDEFGHIJKLMNOPQ")); }),
            "generate: the prompt has 17 tokens, and the model's encoder reads 16 at most");
  const LetterWords bare(29);
  EXPECT_EQ(
      refused([&] { answered(model, greedy("ABC"), bare); }),
      "generate: nothing says what the decoder starts with: the tokenizer has no token that begins a text, "
      "and no padding");
  Wish beyond = greedy("ABC");
  beyond.start = 29;
  EXPECT_EQ(refused([&] { answered(model, beyond); }),
            "generate: the prompt has token 29, and the model knows 29; is it the model's tokenizer");
}
