// Every derivative in a model against differences of its loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/few_experts.h"
#include "tests/support/placed.h"
#include "tests/support/sanitized.h"
#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Case {
  std::string name;
  ModelConfig config;
  bool segments = false;
};

Case with(std::string name, ModelConfig config, const std::function<void(ModelConfig&)>& change = {},
          bool segments = false) {
  if (change) change(config);
  complete(config);
  return {std::move(name), config, segments};
}

/// Losses count as much in the objective as in what is told.
ModelConfig mixture(ModelConfig c, const RouterConfig& router) {
  c = with_four_experts(c, router);
  if (!router.sinkhorn()) c.experts.router.coefficients = {0.5};
  return c;
}

std::vector<Case> cases() {
  return {
      with("gpt2", tiny_gpt2()),
      with("llama", tiny_llama()),
      with("dropout", tiny_gpt2(), [](auto& c) { c.hidden_dropout = c.attention_dropout = 0.2; }),
      with("untied", tiny_gpt2(), [](auto& c) { c.tied_output = false; }),
      with("multi_query", tiny_llama(), [](auto& c) { c.groups = 1; }),
      with("qk_norm", tiny_llama(), [](auto& c) { c.qk_norm = true; }),
      with("qk_norm_whole", tiny_llama(), [](auto& c) { c.qk_norm_whole = true; }),
      with("centered_gain", tiny_llama(), [](auto& c) { c.norm_centered_gain = true; }),
      with("part_of_channels_turns", tiny_llama(), [](auto& c) { c.rotary.percent = 0.5; }),
      with("neighbours_turn", tiny_llama(), [](auto& c) { c.rotary.interleaved = true; }),
      with("no_positions", tiny_gpt2(), [](auto& c) { c.positions = Positions::none; }),
      with("window", tiny_llama(), [](auto& c) { c.window = 3; }),
      with("documents", tiny_gpt2(), {}, true),
      with("geglu", tiny_llama(), [](auto& c) { c.activation = Activation::gelu_erf; }),
      with("squared_relu", tiny_gpt2(), [](auto& c) { c.activation = Activation::squared_relu; }),
      with("sinks", tiny_llama(), [](auto& c) { c.sink = Sink::learned; }),
      with("sinks_of_zero", tiny_gpt2(), [](auto& c) { c.sink = Sink::zero; }),
      with("latent_with_sinks", tiny_latent(), [](auto& c) { c.sink = Sink::learned; }),
      with("gates_within_a_limit", tiny_llama(),
           [](auto& c) {
             c.activation = Activation::quick_gelu;
             c.gate_limit = 1.75;
             c.gate_offset = 1;
           }),
      with("wide_heads", tiny_gpt2(), [](auto& c) { c.channels = 8; }),
      with("residual_after_norm", tiny_gpt2(), [](auto& c) { c.residual_after_norm = true; }),
      with("latent", tiny_latent()),
      with("latent_with_learned_positions", tiny_latent(), [](auto& c) { c.positions = Positions::learned; }),
      with("latent_without_norms_of_whole_queries", tiny_latent(),
           [](auto& c) {
             c.latent.query_rank = 0;
             c.qk_norm = false;
             c.linear_bias = true;
           }),
      with(
          "latent_with_dropout_and_documents", tiny_latent(),
          [](auto& c) {
            c.hidden_dropout = c.attention_dropout = 0.2;
            c.rotary.scaling = RotaryScaling::yarn;
            c.rotary.factor = 4;
            c.rotary.original_positions = 4;
            c.rotary.mscale_all = 0.7;
          },
          true),
      with("further_tokens", tiny_ahead(tiny_gpt2()),
           [](auto& c) { c.hidden_dropout = c.attention_dropout = 0.2; }),
      with("further_tokens_untied", tiny_ahead(tiny_llama()), [](auto& c) { c.embedding_multiplier = 3; }),
      with("bert", tiny_bert()),
      with("bert_without_sentence_order", tiny_bert(), [](auto& c) { c.sentence_order = false; }),
      with("bert_untied", tiny_bert(), [](auto& c) { c.tied_output = false; }),
      with("bert_with_norms_behind", tiny_bert(), [](auto& c) { c.residual_after_norm = true; }),
      with("widths", tiny_gpt2(),
           [](auto& c) {
             c.mup = {.on = true, .base_hidden = 8, .embedding_multiplier = 3, .base_channels = 2};
           }),
      with("t5", tiny_t5()),
      with("t5_with_learned_positions", tiny_t5(), [](auto& c) { c.positions = Positions::learned; }),
      with("t5_1_1", tiny_t5(),
           [](auto& c) {
             c.norm = NormKind::rms;
             c.linear_bias = c.qkv_bias = c.tied_output = false;
             c.gated = true;
             c.softmax_scale = 1;
             c.positions = Positions::rotary;
           }),
      with("t5_of_uneven_stacks", tiny_t5(),
           [](auto& c) {
             c.layers = 1;
             c.decoder_layers = 3;
             c.hidden_dropout = c.attention_dropout = 0.2;
           }),
      with("t5_with_norms_behind", tiny_t5(), [](auto& c) { c.residual_after_norm = true; }),
      with("t5_gated_with_norms_behind", tiny_t5(),
           [](auto& c) {
             c.residual_after_norm = c.gated = true;
             c.norm = NormKind::rms;
             c.positions = Positions::learned;
             c.hidden_dropout = c.attention_dropout = 0.2;
           }),
      with("bert_gated", tiny_bert(),
           [](auto& c) {
             c.gated = true;
             c.norm = NormKind::rms;
             c.positions = Positions::rotary;
           }),
      with("embedding_multiplier", tiny_llama(), [](auto& c) { c.embedding_multiplier = 4; }),
  };
}

std::vector<Case> placed() {
  return {
      with("qk_norm_plain", tiny_gpt2(), [](auto& c) { c.qk_norm_plain = true; }),
      with("norms_around", tiny_gpt2(), [](auto& c) { c.norm_places = NormPlaces::around; }),
      with("norms_behind", tiny_llama(),
           [](auto& c) {
             c.norm_places = NormPlaces::behind;
             c.qk_norm_whole = true;
             c.hidden_dropout = 0.2;
           }),
      with("windows_that_turn_otherwise", tiny_llama(),
           [](auto& c) {
             c.window = 3;
             c.window_layers = {1, 0};
             c.rotary.window_base = 50;
             c.norm_places = NormPlaces::around;
             c.norm_centered_gain = true;
           }),
      with("caps", tiny_capped()),
      with("chunks_and_queries_that_grow", tiny_chunks()),
      with("queries_that_all_grow", tiny_grown()),
      with("scores_that_fall", tiny_falling()),
      with("caps_of_further_tokens", tiny_ahead(tiny_llama()),
           [](auto& c) {
             c.scores.cap = 0.5;
             c.output_cap = 0.5;
             c.output_multiplier = 0.3;
             c.attention_dropout = 0.2;
           }),
      with("parallel_behind_own_norms", tiny_gpt2(),
           [](auto& c) {
             c.parallel_sublayers = ParallelSublayers::own_norms;
             c.hidden_dropout = c.attention_dropout = 0.2;
             c.residual_multiplier = 0.3;
           }),
      with("parallel_behind_one_norm", tiny_gpt2(),
           [](auto& c) {
             c.parallel_sublayers = ParallelSublayers::one_norm;
             c.hidden_dropout = 0.2;
             c.norm_bias = false;
           }),
      with("biases_of_logits_and_of_no_projection", tiny_gpt2(),
           [](auto& c) {
             c.logits_bias = true;
             c.project_bias = false;
             c.tied_output = false;
           }),
      with("parallel_latent", tiny_latent(),
           [](auto& c) { c.parallel_sublayers = ParallelSublayers::one_norm; }),
      with("residual_multiplier", tiny_gpt2(),
           [](auto& c) {
             c.residual_multiplier = 0.3;
             c.hidden_dropout = 0.2;
           }),
  };
}

std::vector<Case> detailed() {
  return {
      with("qk_norm_each", tiny_command_plus(), [](auto& c) { c.heads = 4, c.groups = 2; }),
      with("qk_norm_each_around_zero", tiny_llama(),
           [](auto& c) { c.qk_norm_each = c.norm_centered_gain = true; }),
      with("qk_norm_turned", tiny_turned()),
      with("qk_norm_each_turned", tiny_turned(), [](auto& c) { c.qk_norm_each = true; }),
      with("bare_and_limited", tiny_bare()),
      with("bare_around", tiny_bare(), [](auto& c) { c.norm_places = NormPlaces::around; }),
      with("bare_behind", tiny_bare(),
           [](auto& c) {
             c.norm_places = NormPlaces::behind;
             c.qkv_limit = 0;  // which has a corner, and what is turned far meets it
           }),
  };
}

std::vector<Case> remembering() {
  return {
      with("delta", tiny_delta()),
      with("delta_alone", tiny_gpt2(),
           [](auto& c) {
             c.activation = Activation::silu;
             c.hidden_dropout = 0.2;
             c.delta = {.on = true,
                        .layers = {1, 1},
                        .key_heads = 2,
                        .value_heads = 2,
                        .key_channels = 3,
                        .value_channels = 4};
           }),
      with("state_spaces", tiny_hybrid("MM")),
      with("layers_of_one_thing_each", tiny_hybrid("M*-G"), [](auto& c) { c.hidden_dropout = 0.2; }),
      with("state_spaces_and_experts", tiny_hybrid("ME"),
           [](auto& c) {
             c = mixture(c, {.score = RouterScore::sigmoid});
             c.experts.router.coefficients = {1};  // of the one layer that has experts
           }),
      with("state_spaces_behind_layer_norms", tiny_hybrid("M-"),
           [](auto& c) {
             c.norm = NormKind::layer;
             c.linear_bias = true;
           }),
      with("further_tokens_by_layers_of_one_thing_each", tiny_hybrid("M*-"),
           [](auto& c) {
             c.ahead = {.depths = 2, .factor = 2};
             c.hybrid.ahead = "M*-";
           }),
      with("gates_of_heads", tiny_llama(), [](auto& c) { c.attention_gate = true; }),
      with("gates_of_heads_with_biases", tiny_gpt2(), [](auto& c) { c.attention_gate = true; }),
  };
}

std::vector<Case> mixtures() {
  return {
      with("experts", mixture(tiny_llama(), {.z_loss = 0.5})),
      with("experts_with_biases", mixture(tiny_gpt2(), {.chosen = 1, .softmax_first = true})),
      with("experts_of_groups", mixture(tiny_llama(), {.score = RouterScore::sigmoid,
                                                       .groups = 2,
                                                       .groups_kept = 1,
                                                       .scaling = 1.5,
                                                       .expert_bias = true,
                                                       .balancing = {Balancing::seq_aux_loss}})),
      with("experts_of_little_room",
           mixture(tiny_llama(), {.score = RouterScore::sqrt_softplus, .capacity = 0.6})),
      with("experts_beside_a_shared_one", mixture(tiny_llama(), {}),
           [](auto& c) {
             c.experts.shared_hidden = 16;
             c.experts.shared_gate = true;
             c.experts.latent = 8;
             c.experts.router.coefficients = {1};
             c.experts.layers = {0, 1};
           }),
      with("experts_of_weighed_rows", mixture(tiny_llama(), {.chosen = 1, .score = RouterScore::sigmoid}),
           [](auto& c) {
             c.experts.weigh_input = true;
             c.experts.shared_hidden = 16;
           }),
      with("experts_with_biases_of_weighed_rows", mixture(tiny_gpt2(), {.capacity = 0.7}),
           [](auto& c) {
             c.experts.weigh_input = true;
             c.norm_places = NormPlaces::around;
           }),
      with("experts_beside_attention", mixture(tiny_llama(), {}),
           [](auto& c) { c.parallel_sublayers = ParallelSublayers::one_norm; }),
      with("experts_beside_an_mlp", mixture(tiny_gpt2(), {}),
           [](auto& c) {
             c.experts.residual = true;
             c.hidden_dropout = 0.2;
           }),
      // Every token shifts every other's share: only where all are chosen does no small change choose others.
      with("experts_shared_out", mixture(tiny_llama(), {.chosen = 4, .balancing = {Balancing::sinkhorn}})),
      with("experts_chosen_in_doubles",
           mixture(tiny_llama(), {.z_loss = 0.5, .precision = RouterPrecision::f64})),
      with("experts_chosen_in_doubles_with_biases",
           mixture(tiny_gpt2(), {.chosen = 1, .softmax_first = true, .precision = RouterPrecision::f64})),
      with("experts_shared_out_in_doubles", mixture(tiny_llama(), {.chosen = 4,
                                                                   .balancing = {Balancing::sinkhorn},
                                                                   .jitter = 0.3,
                                                                   .precision = RouterPrecision::f64})),
      with("experts_under_noise", mixture(tiny_llama(), {.jitter = 0.3})),
      with("experts_of_further_tokens_through_one_layer",
           mixture(tiny_ahead(tiny_llama()), {.z_loss = 1.0 / 3}),
           [](auto& c) {
             c.experts.router.coefficients = {1.0 / 3};  // what is told is a mean over three layers
             c.ahead.repeated = true;
             c.hidden_dropout = c.attention_dropout = 0.2;
           }),
  };
}

class Gradient : public ::testing::TestWithParam<Case> {};

/// (f(x + h) - f(x - h)) / 2h, with x put back.
double difference(const Tensor& values, std::int64_t i, double h, const std::function<double()>& f) {
  float& x = values.as<float>()[std::size_t(i)];
  const float kept = x;
  x = float(kept + h);
  const double up = f();
  x = float(kept - h);
  const double down = f();
  x = kept;
  return (up - down) / (2 * h);
}

}  // namespace

TEST_P(Gradient, agrees_with_differences_for_every_parameter) {
  const auto device = open_device("cpu:reference", {.threads = 1});
  const ModelConfig& config = GetParam().config;
  TinyModel model(config, *device);
  Batch batch = tiny_batch(*device, config, 2);
  if (GetParam().segments)
    batch.text.segments = from_host(*device, {2, 8},
                                    std::vector<std::int32_t>{0, 0, 0, 1, 1, 1, 1, 1,  //
                                                              0, 0, 0, 0, 0, 0, 1, 1});
  constexpr float factor = 0.25;
  (void)model.train(batch, factor);
  const auto loss = [&] { return model.objective(batch, factor); };
  // Where another expert is chosen the objective jumps: so near no choice of these models changes. And a
  // short key is turned far by a small step, as is what little a layer gives where a bare norm stands behind
  // it.
  const bool is_turned_far = config.experts.count > 0 || config.delta.on || !config.norm_gain;
  const double h = is_turned_far ? 1e-3 : 5e-3;
  model.stage().each_parameter([&](Parameter& p) {
    const auto grad = numbers(p.grad.sum());
    const double scale = std::abs(*std::ranges::max_element(grad, {}, [](double g) { return std::abs(g); }));
    // Every forty-first element: all rows and columns of every matrix are met.
    const std::int64_t step = (p.value.rank() > 1 ? 41 : 7) * every(6);
    for (std::int64_t i = 0; i < p.value.elements(); i += step) {
      const double expected = difference(p.value, i, h, loss);
      EXPECT_NEAR(grad[std::size_t(i)], expected, 4e-3 * scale + 2e-4) << p.name << " element " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Models, Gradient, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Placed, Gradient, ::testing::ValuesIn(placed()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Detailed, Gradient, ::testing::ValuesIn(detailed()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Remembering, Gradient, ::testing::ValuesIn(remembering()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Mixtures, Gradient, ::testing::ValuesIn(mixtures()),
                         [](const auto& test) { return test.param.name; });
