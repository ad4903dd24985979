// How a model that says one thing goes on: what is told, where it ends, what it may not say.
#include "weft/generate/continue.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/refused.h"
#include "tests/support/tiny.h"
#include "weft/comm/threads.h"
#include "weft/mesh/mesh.h"
#include "weft/model/gpt/gpt.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/weights.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Every id is one byte of the text that the ids say in turn, whatever they are.
class Saying : public Tokenizer {
 public:
  Saying(std::string text, std::int32_t size) : text_(std::move(text)), size_(size) {}
  std::vector<std::int32_t> encode(std::string_view utf8) const override {
    return std::vector<std::int32_t>(utf8.size(), 1);
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string out = text_.substr(0, ids.size());
    // As tokenizers do: a character that is not complete is U+FFFD.
    if (!out.empty() && out.back() == '\xC3') out.replace(out.size() - 1, 1, "\xEF\xBF\xBD");
    return out;
  }
  std::int32_t size() const override { return size_; }
  std::optional<std::int32_t> special(std::string_view) const override { return {}; }
  std::string token(std::int32_t) const override { return ""; }

 private:
  std::string text_;
  std::int32_t size_;
};

/// Every id is a letter.
class Letters final : public Saying {
 public:
  Letters() : Saying("", 29) {}
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string out;
    for (const std::int32_t id : ids) out += static_cast<char>('A' + id);
    return out;
  }
};

struct Here {
  std::unique_ptr<Device> device = open_device("cpu", {.threads = 1});
  ModelConfig config = tiny_llama();
  SoloCommunicator solo;
  TinyModel model{config, *device};
  Speaker speaker(const Tokenizer& tokenizer) {
    return {{model.stages(), config, {solo}, *device}, tokenizer};
  }
};

struct Cut {
  ParallelLayout::Degrees degrees;
  Between between = Between::whole;
  ContextForm form = ContextForm::ring;
};

/// What every rank says follows the last three tokens. Embedding, two layers and head are stages of their own
/// that go round the ranks of the pipeline; a whole stage where there is none.
std::vector<std::vector<float>> logits_when_cut(const ModelConfig& config, const Cut& cut,
                                                std::span<const std::int32_t> text) {
  const ParallelLayout layout(cut.degrees);
  std::vector<std::vector<float>> found(std::size_t(layout.world()));
  std::vector<StagePart> parts{{.first_layer = 0, .layers = 2}};
  if (cut.degrees.pp > 1)
    parts = {{0, 0, true, false}, {0, 1, false, false}, {1, 1, false, false}, {2, 0, false, true}};
  run_as_threads(layout.world(), [&](Communicator& world) {
    const ProcessMesh mesh(layout, world);
    const auto device = open_device("cpu", {.threads = 1});
    const Circles circles{mesh.along(Axis::tp), cut.between, {&mesh.along(Axis::cp), cut.form}};
    std::map<int, Stage> stages;
    std::vector<int> home;
    for (int i = 0; i < int(parts.size()); ++i) {
      home.push_back(i % cut.degrees.pp);
      if (home.back() == mesh.place(Axis::pp))
        stages[i] = kind_named("gpt").build(config, parts[std::size_t(i)], circles, *device);
    }
    Weights weights(
        [&](const VisitParameter& visit) {
          for (const auto& [number, stage] : stages) stage.each_parameter(visit);
        },
        *device, Dtype::f32, Weights::For::reading);
    weights.initialize(7);
    const PipelineHere pipeline{home, parts, mesh.along(Axis::pp)};
    const ModelHere model{stages,  config,          {circles.tp, circles.between},
                          *device, circles.context, parts.size() > 1 ? &pipeline : nullptr};
    found[std::size_t(world.rank())] = TextReader(model).logits(text, 3);
  });
  return found;
}

}  // namespace

TEST(Continue, tells_characters_whole_and_everything_once) {
  Here here;
  const Saying tokenizer("a\xC3\xA9z", 29);
  std::vector<std::string> told;
  const std::string all = continue_text(here.speaker(tokenizer), {.prompt = "x", .tokens = 4},
                                        [&](const std::string& piece) { told.push_back(piece); });
  EXPECT_EQ(all, "a\xC3\xA9z");
  EXPECT_EQ(told, (std::vector<std::string>{"a", "\xC3\xA9", "z"}));
}

TEST(Continue, says_where_a_model_gives_no_numbers) {
  Here here;
  here.model.stage().each_parameter([](Parameter& p) {
    if (p.name == "final_norm.gain") ops::fill(p.value, NAN);
  });
  const Saying tokenizer("abc", 29);
  EXPECT_EQ(
      refused([&] { (void)continue_text(here.speaker(tokenizer), {.prompt = "x"}); }),
      "generate: what the model says of the next word is no number (NaN): its weights hold some that are "
      "not finite, or are too large for the precision");
}

TEST(Continue, the_same_seed_draws_the_same_text_and_greedy_needs_none) {
  Here here;
  const Letters tokenizer;
  const auto said = [&](double temperature, std::uint64_t seed) {
    return continue_text(here.speaker(tokenizer),
                         {.prompt = "x", .tokens = 20, .choice = {.temperature = temperature}, .seed = seed});
  };
  EXPECT_EQ(said(1, 1), said(1, 1));
  EXPECT_NE(said(1, 1), said(1, 2));
  EXPECT_EQ(said(0, 1), said(0, 2));
}

TEST(Continue, ids_that_the_tokenizer_does_not_know_are_never_chosen) {
  Here here;
  const Saying tokenizer(std::string(30, 'a'), 1);
  // Only id 0 is left, and it ends the text.
  EXPECT_EQ(continue_text(here.speaker(tokenizer), {.prompt = "x", .tokens = 30, .ends = {0}}), "");
  EXPECT_EQ(continue_text(here.speaker(tokenizer), {.prompt = "x", .tokens = 30}), std::string(30, 'a'));
}

TEST(Continue, a_prompt_without_tokens_is_refused) {
  Here here;
  EXPECT_EQ(refused([&] { continue_text(here.speaker(Saying("a", 29)), {.prompt = ""}); }),
            "generate: the prompt has no tokens to go on from");
}

TEST(Continue, tokens_that_the_model_does_not_know_are_refused) {
  Here here;
  here.config.vocabulary = 1;  // the prompt is id 1
  EXPECT_EQ(refused([&] { continue_text(here.speaker(Saying("a", 29)), {.prompt = "x"}); }),
            "generate: the prompt has token 1, and the model knows 1; is it the model's tokenizer");
}

TEST(Logits, of_every_position_are_those_of_its_beginning) {
  Here here;
  const std::vector<std::int32_t> text{3, 1, 4, 1, 5, 9};
  TextReader reader({here.model.stages(), here.config, {here.solo}, *here.device});
  const auto all = reader.logits(text, 6);
  ASSERT_EQ(std::ssize(all), 6 * here.config.vocabulary);
  for (std::int64_t length = 1; length <= 6; ++length) {
    const auto last = reader.logits(std::span(text).first(std::size_t(length)), 1);
    for (std::int64_t word = 0; word < here.config.vocabulary; ++word)
      EXPECT_NEAR(last[std::size_t(word)], all[std::size_t((length - 1) * here.config.vocabulary + word)],
                  1e-5)
          << "length " << length;
  }
}

TEST(Logits, are_the_same_on_every_rank_that_holds_a_part) {
  Here here;
  const std::vector<std::int32_t> text{3, 1, 4, 1, 5, 9};
  const auto whole =
      TextReader({here.model.stages(), here.config, {here.solo}, *here.device}).logits(text, 3);
  run_as_threads(2, [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    const auto stages = whole_model(here.config, world, *device);
    Weights weights([&](const VisitParameter& visit) { stages.at(0).each_parameter(visit); }, *device,
                    Dtype::f32, Weights::For::reading);
    weights.initialize(7);
    const auto found = TextReader({stages, here.config, {world}, *device}).logits(text, 3);
    ASSERT_EQ(found.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(found[i], whole[i], 1e-4);
  });
}

TEST(Logits, are_those_of_one_rank_through_stages_and_over_cut_sequences) {
  Here here;
  const std::vector<std::int32_t> text{3, 1, 4, 1, 5};
  const auto whole =
      TextReader({here.model.stages(), here.config, {here.solo}, *here.device}).logits(text, 3);
  for (const Cut& cut :
       {Cut{{.pp = 2}}, Cut{{.cp = 2}}, Cut{{.cp = 2, .pp = 4}, Between::whole, ContextForm::heads},
        Cut{{.tp = 2, .cp = 2, .pp = 2}, Between::sequence_cut, ContextForm::gather}})
    for (const std::vector<float>& found : logits_when_cut(here.config, cut, text)) {
      ASSERT_EQ(found.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(found[i], whole[i], 1e-4);
    }
}
