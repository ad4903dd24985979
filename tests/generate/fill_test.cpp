// What may stand where words are hidden: probabilities of the whole vocabulary, the same under every layout.
#include "weft/generate/fill.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/generate/words.h"
#include "tests/support/refused.h"

using namespace weft;
using namespace weft::testing;

namespace {

// X, Y and Z are the beginning, the end and the mask.
const LetterWords letters(29, {{"cls", 23}, {"sep", 24}, {"mask", 25}});

Filled filled(Alone& model, const std::string& prompt, std::int64_t words = 3) {
  return fill_hidden({model.here(), letters}, prompt, words);
}

}  // namespace

TEST(Fill, gives_the_likeliest_words_with_the_probabilities_of_the_softmax) {
  Alone model(tiny_bert());
  const Filled found = filled(model, "DZC", 29);
  const std::vector<std::int32_t> ids{23, 3, 25, 2, 24};
  const auto logits = TextReader(model.here()).logits(ids, 5);
  const auto row = std::span(logits).subspan(2 * 29, 29);
  double all = 0, sum = 0;
  for (const float logit : row) all += std::exp(double(logit));
  ASSERT_EQ(found.hidden.size(), 1U);
  ASSERT_EQ(found.hidden[0].size(), 29U);
  for (std::size_t i = 0; i < 29; ++i) {
    const Guess& guess = found.hidden[0][i];
    EXPECT_NEAR(guess.probability, std::exp(double(row[std::size_t(guess.id)])) / all, 1e-12);
    EXPECT_EQ(guess.token, letters.token(guess.id));
    EXPECT_LE(guess.probability, i > 0 ? found.hidden[0][i - 1].probability : 1);
    sum += guess.probability;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(found.text, "D" + found.hidden[0][0].token + "C");
}

TEST(Fill, guesses_every_hidden_word_by_itself_and_keeps_ends_that_are_there) {
  Alone model(tiny_bert());
  EXPECT_EQ(filled(model, "DZCZ").hidden.size(), 2U);
  EXPECT_EQ(filled(model, "XDZCY").text, filled(model, "DZC").text);
  EXPECT_EQ(filled(model, "DZC").hidden[0].size(), 3U);
}

// Stages apart, heads and words cut, sequences cut with and without padding behind.
TEST(Fill, is_the_same_under_every_layout) {
  for (const bool order : {true, false}) {
    ModelConfig config = tiny_bert();
    config.sentence_order = order;
    Alone alone(config);
    const Filled wanted = filled(alone, "DZC");
    const std::vector<StagePart> one{{0, 2}},
        three{{0, 1, true, false}, {1, 1, false, false}, {2, 0, false, true}};
    for (const CutModel& cut :
         {CutModel{{.tp = 2}, one}, CutModel{{.pp = 2}, three}, CutModel{{.cp = 2}, one},
          CutModel{{.tp = 2, .pp = 2}, three, Between::sequence_cut}})
      for (const Filled& found : said_by_ranks<Filled>(config, cut, [](const ModelHere& model) {
             return fill_hidden({model, letters}, "DZC", 3);
           })) {
        EXPECT_EQ(found.text, wanted.text);
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_NEAR(found.hidden[0][i].probability, wanted.hidden[0][i].probability, 1e-6);
      }
  }
}

TEST(Fill, says_what_is_missing_or_does_not_fit) {
  Alone model(tiny_bert());
  EXPECT_EQ(refused([&] { filled(model, "ABC"); }),
            "generate: the prompt has no Z, and the model guesses hidden words only");
  EXPECT_EQ(refused([&] { filled(model, "ABCDEFZ"); }),
            "generate: the prompt has 9 tokens with X and Y, and the model reads 8 at most");
  const LetterWords bare(29);
  EXPECT_EQ(refused([&] {
              (void)fill_hidden({model.here(), bare}, "A", 1);
            }),
            "generate: the tokenizer has no [MASK], which the model was trained with");
}
