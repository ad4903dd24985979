// Layers that are one thing each, by their letters.
#include "tests/model/small.h"
#include "tests/support/tiny.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/layer_parts.h"
#include "weft/optim/rules/muon.h"

using namespace weft;
using namespace weft::testing;

TEST(Hybrid, has_layers_of_one_thing_each) {
  const ModelConfig m = tiny_hybrid("M*-EG");
  const ParameterList list = gpt_parameters(m);
  EXPECT_EQ(list.at("layers.0.state_norm.gain").shape, (Shape{16}));
  EXPECT_EQ(list.at("layers.0.state.in.weight").shape, (Shape{4 * (2 * 6 + 2 * 10 + 2), 16}));
  EXPECT_EQ(list.at("layers.0.state.filter").shape, (Shape{4, 2 * 6 + 10, 3}));
  EXPECT_EQ(list.at("layers.0.state.filter_bias").shape, (Shape{4 * (2 * 6 + 10)}));
  EXPECT_EQ(list.at("layers.0.state.skip").shape, (Shape{8}));
  EXPECT_EQ(list.at("layers.0.state.norm.gain").shape, (Shape{40}));
  EXPECT_TRUE(list.has("layers.1.attention.qkv.weight"));
  EXPECT_TRUE(list.has("layers.2.mlp.up.weight"));
  EXPECT_TRUE(list.has("layers.3.router.weight"));
  EXPECT_TRUE(list.has("layers.4.delta.in.weight"));
  for (const char* none : {"layers.0.mlp_norm.gain", "layers.1.mlp_norm.gain", "layers.2.attention_norm.gain",
                           "layers.3.attention_norm.gain", "layers.4.mlp_norm.gain"})
    EXPECT_FALSE(list.has(none)) << none;
  EXPECT_EQ(m.experts.layers, (std::vector<int>{0, 0, 0, 1, 0}));
  EXPECT_EQ(m.delta.layers, (std::vector<int>{0, 0, 0, 0, 1}));
  ModelConfig again = m;
  complete(again);  // as a checkpoint says it
  EXPECT_EQ(again.delta.layers, m.delta.layers);
}

TEST(Hybrid, has_twice_as_wide_state_spaces_as_the_model) {
  ModelConfig m = small();
  m.hybrid.layers = std::string(std::size_t(m.layers), 'M');
  complete(m);
  EXPECT_EQ(m.state.heads, 2 * m.hidden / 64);
}

TEST(Hybrid, refuses_letters_that_make_no_model) {
  const auto with = [](auto change) {
    ModelConfig m = small();
    m.hybrid.layers = std::string(std::size_t(m.layers), 'M');
    change(m);
    return m;
  };
  const auto letters = [&](const char* all) {
    return with([&](ModelConfig& m) {
      m.hybrid.layers = all;
      m.layers = int(m.hybrid.layers.size());
    });
  };
  refused(
      letters("M*x"),
      "model: {model.hybrid.layers} 'M*x': 'x' at character 3 is no layer; take M (a state space), G (the "
      "gated delta rule), * (attention), - (an MLP) or E (experts)");
  refused(letters("--"),
          "model: {model.hybrid.layers} '--' has no layer that sees other tokens: add M, G or *");
  refused(
      letters("ME"),
      "model: {model.hybrid.layers} has layers of experts, E, and {model.experts.count} is 0: say how many "
      "there are");
  refused(with([](ModelConfig& m) { m.hybrid.layers += "M"; }),
          text("model: {model.hybrid.layers} has ", small().layers + 1, " letters, and {model.layers} says ",
               small().layers));
  refused(with([](ModelConfig& m) { m.experts = {.count = 4, .every = 1}; }),
          "model: {model.hybrid.layers} has no layer of experts, E: leave {model.experts.count} out");
  refused(with([](ModelConfig& m) { m.delta.on = true; }),
          "model: {model.hybrid.layers} has no layer of the gated delta rule, G: leave {model.delta.on} out");
  refused(with([](ModelConfig& m) { m.delta.attends_every = 2; }),
          "model: {model.hybrid.layers} says which layers remember: leave {model.delta.attends_every} out");
  refused(with([](ModelConfig& m) { m.experts = {.count = 4, .every = 2}; }),
          "model: {model.hybrid.layers} says which layers have experts: leave {model.experts.every} out");
  refused(with([](ModelConfig& m) { m.residual_after_norm = true; }),
          "model: layers of one thing each add to what came in: leave {model.residual_after_norm} or "
          "{model.hybrid.layers} out");
  refused(with([](ModelConfig& m) { m.kind = "bert"; }),
          "model: bert has no layers that are one thing each: leave {model.hybrid.layers} out");
}

TEST(Hybrid, refuses_letters_of_further_tokens_that_make_none) {
  const auto ahead = [](const char* letters, int depths = 1) {
    ModelConfig m = small();
    m.hybrid = {.layers = std::string(std::size_t(m.layers), 'M'), .ahead = letters};
    m.ahead.depths = depths;
    return m;
  };
  refused(ahead("*", 0),
          "model: {model.hybrid.ahead} says what guesses further tokens, and {model.ahead.depths} is 0");
  refused(ahead(""),
          "model: nothing says what guesses further tokens where layers are one thing each: add "
          "{model.hybrid.ahead}");
  refused(
      ahead("M-M"),
      "model: {model.hybrid.ahead} 'M-M' has two layers of one kind, 'M', for a further token, and there can "
      "be one of each");
  refused(
      ahead("E"),
      "model: {model.hybrid.ahead} 'E' guesses further tokens by 'E', and {model.hybrid.layers} has no such "
      "layer");
  ModelConfig m = small();
  m.hybrid.ahead = "*";
  refused(
      m,
      "model: {model.hybrid.ahead} is about layers of one thing each, and {model.hybrid.layers} does not say "
      "any");
  m = tiny_hybrid("G*");
  m.ahead.depths = 1;
  m.hybrid.ahead = "G*";
  refused(m,
          "model: {model.hybrid.ahead} 'G*' has 'G' and '*' for one further token, and there can be one of "
          "the two");
  m = tiny_hybrid("ME");
  m.ahead.depths = 1;
  m.hybrid.ahead = "E-";
  refused(m,
          "model: {model.hybrid.ahead} 'E-' has '-' and 'E' for one further token, and there can be one of "
          "the two");
}

TEST(Hybrid, refuses_what_state_spaces_do_not_have) {
  const auto with = [](auto change) {
    ModelConfig m = small();
    m.hybrid.layers = std::string(std::size_t(m.layers), 'M');
    change(m);
    return m;
  };
  refused(with([](ModelConfig& m) { m.state = {.heads = 12}; }),
          "model: {model.state.heads} 12 is not a multiple of {model.state.groups} 8");
  refused(with([](ModelConfig& m) { m.state.head_channels = 48; }),
          text("model: twice the hidden size ", small().hidden,
               " is not a multiple of {model.state.head_channels} 48: say {model.state.heads}"));
  refused(with([](ModelConfig& m) { m.mup.on = true; }),
          "model: layers that remember have no scale by width: leave {model.mup.on} out");
}

TEST(Hybrid, knows_layers_like_one_of_its_own) {
  const ModelConfig m = tiny_hybrid("M*-EG"), alike = layers_alike(m, 3, 2);
  EXPECT_EQ(alike.hybrid.layers, "EE");
  EXPECT_EQ(alike.experts.layers, (std::vector<int>{1, 1}));
  EXPECT_EQ(parts_in_all(alike, LayerPart::experts), 2);
  EXPECT_EQ(parts_in_all(alike, LayerPart::state), 0);
}

/// As in Megatron: of what a state space makes, no direction is worth another's.
TEST(Hybrid, gives_muon_the_matrices_of_state_spaces_that_it_has_elsewhere) {
  const auto device = open_device("meta");
  TinyModel model(tiny_hybrid("M-"), *device);
  std::vector<std::string> muons;
  model.stage().each_parameter([&](Parameter& p) {
    if (is_muons(p)) muons.push_back(p.name);
  });
  EXPECT_EQ(muons, (std::vector<std::string>{"layers.0.state.project.weight", "layers.1.mlp.up.weight",
                                             "layers.1.mlp.down.weight"}));
}
