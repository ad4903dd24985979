// Norms in other places, windows that turn otherwise, and weighed rows: what a model is made of, and what is
// refused.
#include "tests/support/placed.h"
#include "tests/model/small.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/rotary.h"
#include "weft/model/stack.h"

using namespace weft;
using namespace weft::testing;

TEST(NormPlaces, say_which_norms_there_are) {
  const ParameterList around = gpt_parameters(tiny_gemma()), behind = gpt_parameters(tiny_olmo());
  for (const char* name : {"layers.1.attention_norm", "layers.1.mlp_norm"}) {
    EXPECT_TRUE(around.has(text(name, ".gain")));
    EXPECT_FALSE(behind.has(text(name, ".gain")));
    for (const ParameterList* list : {&around, &behind})
      EXPECT_EQ(list->at(text(name, "_behind.gain")).shape, Shape{16});
  }
  EXPECT_FALSE(around.has("layers.0.attention.q_norm.gain"));
  EXPECT_EQ(behind.at("layers.0.attention.q_norm.gain").shape, Shape{16});
  EXPECT_EQ(behind.at("layers.0.attention.k_norm.gain").shape, Shape{8});
  EXPECT_TRUE(behind.has("final_norm.gain"));
}

TEST(NormPlaces, are_refused_where_nothing_has_them) {
  refused(small_with([](ModelConfig& m) {
            m.kind = "bert";
            m.norm_places = NormPlaces::around;
          }),
          "model: bert has norms before attention and MLPs: leave {model.norm_places} out");
  refused(small_with([](ModelConfig& m) {
            m.residual_after_norm = true;
            m.norm_places = NormPlaces::behind;
          }),
          "model: {model.residual_after_norm} adds to what a norm before gave: leave it or "
          "{model.norm_places} out");
  refused(small_with([](ModelConfig& m) { m.qk_norm_plain = m.qk_norm_whole = true; }),
          "model: {model.qk_norm_whole} is about all heads together and {model.qk_norm_plain} about each: "
          "leave one of them out");
  refused(small_with([](ModelConfig& m) { m.qk_norm_turning = true; }),
          "model: {model.qk_norm_turning} is about norms without gains, and there are none: add "
          "{model.qk_norm_plain}");
  refused(small_with([](ModelConfig& m) {
            m.latent.on = true;
            m.qk_norm_plain = true;
          }),
          "model: latent attention normalizes latents: leave {model.qk_norm_plain} out");
}

TEST(ParallelSublayers, say_which_norms_there_are) {
  const ParameterList own = gpt_parameters(tiny_neox()), one = gpt_parameters(tiny_command());
  for (const ParameterList* list : {&own, &one}) EXPECT_TRUE(list->has("layers.1.attention_norm.gain"));
  EXPECT_TRUE(own.has("layers.1.mlp_norm.gain"));
  EXPECT_FALSE(one.has("layers.1.mlp_norm.gain"));
  EXPECT_TRUE(own.has("final_norm.bias"));
  EXPECT_FALSE(one.has("final_norm.bias"));
}

TEST(ParallelSublayers, are_refused_where_nothing_has_them) {
  refused(small_with([](ModelConfig& m) {
            m.kind = "bert";
            m.parallel_sublayers = ParallelSublayers::one_norm;
          }),
          "model: bert has MLPs that read what attention added: leave {model.parallel_sublayers} out");
  refused(small_with([](ModelConfig& m) {
            m.norm_places = NormPlaces::behind;
            m.parallel_sublayers = ParallelSublayers::one_norm;
          }),
          "model: {model.parallel_sublayers} has norms of what attention and MLPs read alone: leave it or "
          "{model.norm_places} out");
  refused(small_with([](ModelConfig& m) {
            m.residual_after_norm = true;
            m.parallel_sublayers = ParallelSublayers::own_norms;
          }),
          "model: {model.parallel_sublayers} has norms of what attention and MLPs read alone: leave it or "
          "{model.residual_after_norm} out");
  refused(small_with([](ModelConfig& m) {
            m.hybrid.layers = "*-";
            m.parallel_sublayers = ParallelSublayers::own_norms;
          }),
          "model: layers of one thing each have nothing beside it: leave {model.parallel_sublayers} or "
          "{model.hybrid.layers} out");
}

TEST(Biases, are_of_logits_and_projections_where_they_are_asked_for) {
  ModelConfig m = tiny_neox();
  EXPECT_FALSE(gpt_parameters(m).has("output.bias"));
  EXPECT_TRUE(gpt_parameters(m).has("layers.0.attention.project.bias"));
  m.logits_bias = true;
  m.project_bias = false;
  EXPECT_EQ(gpt_parameters(m).at("output.bias").shape, Shape{m.vocabulary});
  EXPECT_FALSE(gpt_parameters(m).has("layers.0.attention.project.bias"));
  EXPECT_TRUE(gpt_parameters(m).has("layers.0.mlp.down.bias"));
  refused(small_with([](ModelConfig& other) {
            other.kind = "bert";
            other.logits_bias = true;
          }),
          "model: bert says by {model.output_bias} whether its logits have biases: leave "
          "{model.logits_bias} out");
}

TEST(NormPlaces, of_all_heads_need_key_heads_for_each_rank) {
  ModelConfig config = tiny_olmo();
  EXPECT_NO_THROW(check_stack_cut(config, {.tp = 2}));
  EXPECT_THAT([&] { check_stack_cut(config, {.tp = 4}); },
              ::testing::ThrowsMessage<Error>("{model.qk_norm_whole}: 2 query groups cannot be shared by 4 "
                                              "tensor-parallel ranks, which show each other theirs"));
}

TEST(NormsOfEachHead, have_gains_for_each_channel) {
  const ParameterList list = gpt_parameters(tiny_command_plus());
  EXPECT_EQ(list.at("layers.0.attention.q_norm.gain").shape, Shape{16});
  EXPECT_EQ(list.at("layers.0.attention.k_norm.gain").shape, Shape{8});
  EXPECT_FALSE(list.has("layers.0.attention.q_norm.bias"));
  EXPECT_NO_THROW(check_stack_cut(tiny_command_plus(), {.tp = 4}));
}

TEST(NormsOfEachHead, are_refused_beside_others) {
  refused(small_with([](ModelConfig& m) { m.qk_norm_each = m.qk_norm_whole = true; }),
          "model: {model.qk_norm_each} gives each head gains of its own, and {model.qk_norm_whole} all heads "
          "together: leave one of them out");
  refused(
      small_with([](ModelConfig& m) { m.qk_norm_each = m.qk_norm_plain = true; }),
      "model: {model.qk_norm_each} gives each head gains of its own, and {model.qk_norm_plain} none: leave "
      "one of them out");
  refused(small_with([](ModelConfig& m) { m.qk_norm_turned = true; }),
          "model: {model.qk_norm_turned} says where norms of queries and keys stand, and there are none: add "
          "{model.qk_norm}");
}

TEST(BareNorms, leave_nothing_to_learn_but_matrices_and_biases_of_attention) {
  const ParameterList list = gpt_parameters(tiny_bare());
  for (const char* name : {"layers.0.attention_norm.gain", "layers.0.mlp_norm.bias", "final_norm.gain",
                           "layers.0.mlp.up.bias", "layers.0.mlp.down.bias"})
    EXPECT_FALSE(list.has(name)) << name;
  EXPECT_TRUE(list.has("layers.0.attention.qkv.bias") && list.has("layers.0.attention.project.bias"));
}

TEST(BareNorms, and_limits_are_refused_where_nothing_has_them) {
  const std::string no =
      "model: bert has gains in its norms, biases in MLPs where attention has some, and queries as they are: "
      "leave {model.norm_gain}, {model.mlp_bias} and {model.qkv_limit} out";
  refused(small_with([](ModelConfig& m) { m.kind = "bert", m.norm_gain = false; }), no);
  refused(small_with([](ModelConfig& m) { m.kind = "bert", m.qkv_limit = 2; }), no);
  refused(small_with([](ModelConfig& m) { m.qkv_limit = 0.5; }),
          "model: {model.qkv_limit} is 0.5, expected 0 or 1 and more");
  refused(small_with([](ModelConfig& m) { m.qkv_limit = 2, m.attention_gate = true; }),
          "model: {model.qkv_limit} limits queries, keys and values, and {model.attention_gate} has gates "
          "there: leave one of them out");
}

TEST(WindowBase, turns_layers_with_a_window_alone) {
  refused(small_with([](ModelConfig& m) {
            m.positions = Positions::rotary;
            m.rotary.window_base = 100;
          }),
          "model: {model.rotary.window_base} is of layers that look through a window, and none does: add "
          "{model.window}");
  refused(small_with([](ModelConfig& m) {
            m.window = 8;
            m.rotary.window_base = 100;
          }),
          "model: {model.rotary.window_base} is of rotary positions, and {model.positions} are others");
  const auto device = open_device("cpu", {.threads = 1});
  ModelConfig config = tiny_gemma(), plain = tiny_llama();
  plain.rotary.base = *config.rotary.window_base;
  EXPECT_EQ(numbers(rotary_angles_of_window(config, *device)), numbers(rotary_angles(plain, *device)));
  EXPECT_NE(numbers(rotary_angles_of_window(config, *device)), numbers(rotary_angles(config, *device)));
  config.rotary.window_base.reset();
  EXPECT_EQ(numbers(rotary_angles_of_window(config, *device)), numbers(rotary_angles(config, *device)));
}

TEST(LayersThatDoNotTurn, are_every_nth_or_those_of_a_list) {
  ModelConfig m = small();
  m.layers = 6;
  m.positions = Positions::rotary;
  m.rotary.skip_every = 3;
  complete(m);
  EXPECT_THAT(m.rotary.skip_layers, ::testing::ElementsAre(0, 0, 1, 0, 0, 1));
  m.layers = 2;
  refused(m, "model: 6 entries say which layers have no rotary positions, but there are 2 layers");
}

TEST(Longrope, needs_a_factor_for_each_pair_and_the_length_that_tells_lists_apart) {
  const auto longrope = [](const std::function<void(RotaryConfig&)>& change) {
    ModelConfig m = small();
    m.positions = Positions::rotary;
    m.rotary.scaling = RotaryScaling::longrope;
    m.rotary.short_factors = m.rotary.long_factors = std::vector<double>(32, 1);
    m.rotary.original_positions = 16;
    change(m.rotary);
    return m;
  };
  refused(longrope([](RotaryConfig& r) { r.short_factors.pop_back(); }),
          "model: {model.rotary.short_factors} has 31 numbers, and 32 pairs of channels turn");
  refused(longrope([](RotaryConfig& r) { r.percent = 0.5; }),
          "model: {model.rotary.short_factors} has 32 numbers, and 16 pairs of channels turn");
  refused(
      longrope([](RotaryConfig& r) { r.scaling = RotaryScaling::none; }),
      "model: {model.rotary.short_factors} is of {model.rotary.scaling=longrope}, which is not asked for");
  refused(longrope([](RotaryConfig& r) { r.original_positions = 0; }),
          "model: {model.rotary.scaling=longrope} has one list of factors for sequences up to a length, and "
          "one for longer ones: {model.rotary.original_positions} says which");
}

TEST(WeighedRows, need_experts_that_read_what_the_router_reads) {
  refused(small_with([](ModelConfig& m) { m.experts.weigh_input = true; }),
          "model: experts are described, and {model.experts.count} is 0: say how many there are");
  refused(small_with([](ModelConfig& m) { m.experts = {.count = 4, .latent = 64, .weigh_input = true}; }),
          "model: {model.experts.weigh_input} multiplies what the router reads, and {model.experts.latent} "
          "gives experts something else: leave one of them out");
}
