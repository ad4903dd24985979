// Of a text that grows only what is new is read: the same logits as of all of it at once.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/generate/words.h"
#include "tests/support/placed.h"
#include "weft/ops/elementwise.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Named {
  const char* name;
  ModelConfig config;
};

/// Among them every kind of attention, every way of saying where a token stands, and layers that remember.
std::vector<Named> models() {
  ModelConfig still = tiny_gpt2(), windows = tiny_llama();
  still.positions = Positions::none;
  still.hybrid.layers = "*-*-";
  still.layers = 4;
  complete(still);
  windows.window = 3;
  windows.window_full_every = 2;
  complete(windows);
  return {{"gpt2", tiny_gpt2()},
          {"llama", tiny_llama()},
          {"mixture", tiny_mixture()},
          {"oss", tiny_oss()},
          {"latent", tiny_latent()},
          {"gemma", tiny_gemma()},
          {"olmo", tiny_olmo()},
          {"command", tiny_command()},
          {"plus", tiny_command_plus()},
          {"bare", tiny_bare()},
          {"turned", tiny_turned()},
          {"capped", tiny_capped()},
          {"chunks", tiny_chunks()},
          {"grown", tiny_grown()},
          {"falling", tiny_falling()},
          {"weighed", tiny_weighed()},
          {"still", still},
          {"windows", windows},
          {"delta", tiny_delta()},
          {"states", tiny_hybrid("MMM*")},
          {"hybrid", tiny_hybrid("M-*-")}};
}

std::vector<float> at_once(const ModelHere& model, std::span<const std::int32_t> text,
                           std::span<const std::int32_t> source = {}) {
  return TextReader(model).logits(text, 1, source);
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size());
  const float largest = std::ranges::max(wanted, {}, [](float x) { return std::abs(x); });
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], 1e-5 * std::abs(largest) + 1e-6) << what << ", word " << i;
}

const std::vector<std::int32_t> letters{3, 1, 4, 1, 5, 9, 2, 6};

/// Everything that a layer makes keys of says something else from now on.
void change_keys(Alone& model) {
  model.model.stage().each_parameter([](Parameter& p) {
    if (p.name.find("qkv.weight") != std::string::npos || p.name.find("key_value") != std::string::npos)
      ops::scale_in_place(p.value, 3);
  });
}

/// Whether what is read next finds what was read before.
bool finds_what_was_read(const ModelConfig& config) {
  Alone model(config);
  TextReader reader(model.here());
  (void)reader.logits(std::span(letters).first(4), 1);
  change_keys(model);
  return reader.logits(std::span(letters).first(5), 1) != at_once(model.here(), std::span(letters).first(5));
}

}  // namespace

TEST(Earlier, a_text_that_grows_has_the_logits_of_all_of_it) {
  for (const auto& [name, config] : models()) {
    Alone model(config);
    TextReader reader(model.here());
    for (const std::size_t length : std::vector<std::size_t>{2, 3, 4, 7, 8})
      expect_near(reader.logits(std::span(letters).first(length), 1),
                  at_once(model.here(), std::span(letters).first(length)), name);
  }
}

TEST(Earlier, all_that_is_new_may_be_asked_for) {
  Alone model(tiny_llama());
  TextReader reader(model.here());
  (void)reader.logits(std::span(letters).first(3), 1);
  expect_near(reader.logits(letters, 5), TextReader(model.here()).logits(letters, 5), "new");
  expect_near(reader.logits(letters, 8), TextReader(model.here()).logits(letters, 8), "all");
}

TEST(Earlier, another_text_begins_anew) {
  Alone model(tiny_llama());
  TextReader reader(model.here());
  (void)reader.logits(std::span(letters).first(4), 1);
  const std::vector<std::int32_t> other{3, 1, 7, 1, 5};
  for (const std::vector<std::int32_t>& text : {other, std::vector<std::int32_t>{3, 1}, letters})
    expect_near(reader.logits(text, 1), at_once(model.here(), text), "other");
}

TEST(Earlier, keys_are_kept_where_tokens_may_be_read_one_by_one) {
  for (const auto& [name, config] : models()) EXPECT_TRUE(finds_what_was_read(config)) << name;
}

// Places in experts that are full, eight bits and exact sums: the text is read again.
TEST(Earlier, texts_are_read_again_where_layers_look_at_how_many_tokens_come_at_once) {
  ModelConfig full = tiny_mixture(), coded = tiny_llama(), exact = tiny_llama();
  full.experts.router.capacity = 1;
  coded.fp8.format = Fp8Format::hybrid;
  coded.fp8.recipe = Fp8Recipe::tensorwise;
  exact.exact = true;
  for (const ModelConfig& config : {full, coded, exact, tiny_bert()}) {
    EXPECT_FALSE(may_read_on(config));
    if (config.kind == "gpt" && !config.fp8.on()) {
      EXPECT_FALSE(finds_what_was_read(config));
    }
  }
  full.experts.router.capacity.reset();
  EXPECT_TRUE(may_read_on(full));
}

TEST(Earlier, a_decoder_keeps_what_it_said) {
  for (const Positions positions : {Positions::relative, Positions::learned, Positions::rotary}) {
    ModelConfig config = tiny_t5();
    config.positions = positions;
    Alone model(config);
    const std::vector<std::int32_t> source{3, 1, 2, 7, 4};
    TextReader reader(model.here());
    for (const std::size_t length : std::vector<std::size_t>{1, 2, 3, 5, 8})
      expect_near(reader.logits(std::span(letters).first(length), 1, source),
                  at_once(model.here(), std::span(letters).first(length), source), "t5");
  }
}

// What fills up a cut sequence stands where the next token will.
TEST(Earlier, is_the_same_under_every_layout) {
  for (const ModelConfig& config :
       {tiny_llama(), tiny_falling(), tiny_latent(), tiny_delta(), tiny_hybrid("M*")}) {
    Alone model(config);
    const std::vector<StagePart> two{{0, 1, true, false}, {1, 1, false, true}};
    for (const CutModel& cut : {CutModel{{.tp = 2}, {{0, config.layers}}}, CutModel{{.pp = 2}, two},
                                CutModel{{.tp = 2, .pp = 2}, two, Between::sequence_cut},
                                CutModel{{.cp = 2}, {{0, config.layers}}}})
      (void)said_by_ranks<int>(config, cut, [&](const ModelHere& here) {
        TextReader reader(here);
        for (const std::size_t length : std::vector<std::size_t>{3, 4, 6, 7})
          expect_near(reader.logits(std::span(letters).first(length), 1),
                      at_once(here, std::span(letters).first(length)), "cut");
        return 0;
      });
  }
}
