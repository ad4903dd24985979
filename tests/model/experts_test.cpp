// What no layer of experts can be, in the words that a person gets.
#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Of tiny_llama with eight experts, changed.
std::string said(void (*change)(ModelConfig&)) {
  ModelConfig config = tiny_llama();
  config.experts.count = 8;
  change(config);
  return refused([&] { complete(config); });
}

}  // namespace

TEST(ExpertSettings, refuse_routers_that_would_choose_nothing_or_too_much) {
  EXPECT_EQ(said([](ModelConfig& m) { m.experts.router.chosen = 9; }),
            "model: {model.experts.router.chosen} 9 is more than the 8 experts");
  EXPECT_EQ(said([](ModelConfig& m) { m.experts.router.chosen = 1; }),
            "model: softmax over the one expert that is chosen is 1 whatever the router says, and it would "
            "learn nothing: add {model.experts.router.softmax_first}");
  EXPECT_EQ(said([](ModelConfig& m) { m.experts.router.groups = 2; }),
            "model: {model.experts.router.groups} and {model.experts.router.groups_kept} go together");
  EXPECT_EQ(
      said([](ModelConfig& m) { m.experts.router.expert_bias = true; }),
      "model: {model.experts.router.expert_bias} is added to scores of a sigmoid or a root of softplus: "
      "change {model.experts.router.score}");
}

TEST(ExpertSettings, refuse_two_mlps_beside_experts) {
  EXPECT_EQ(said([](ModelConfig& m) {
              m.experts.residual = true;
              m.experts.shared_hidden = 16;
            }),
            "model: {model.experts.residual} puts an MLP beside the chosen experts, and "
            "{model.experts.shared_hidden} another: leave one of them out");
}

TEST(ExpertSettings, refuse_rooms_that_are_none) {
  EXPECT_EQ(said([](ModelConfig& m) { m.experts.router.capacity_evaluating = 2; }),
            "model: {model.experts.router.capacity_evaluating} is another room than that of training, where "
            "experts take all: add {model.experts.router.capacity}");
  EXPECT_EQ(said([](ModelConfig& m) { m.experts.router.filled = true; }),
            "model: {model.experts.router.filled} fills experts up to the rows that they take, and "
            "they take all: add {model.experts.router.capacity}");
  EXPECT_EQ(said([](ModelConfig& m) { m.experts.router.least_rows = 4; }),
            "model: {model.experts.router.least_rows} is a least room of experts, and they take all: add "
            "{model.experts.router.capacity}");
}

TEST(ExpertSettings, refuse_what_sinkhorn_has_of_its_own) {
  EXPECT_EQ(said([](ModelConfig& m) {
              m.experts.router.balancing = {Balancing::sinkhorn, Balancing::aux_loss};
            }),
            "model: sinkhorn shares tokens out by itself: name nothing else in "
            "{model.experts.router.balancing}");
  EXPECT_EQ(said([](ModelConfig& m) {
              m.experts.router.balancing = {Balancing::sinkhorn};
              m.experts.router.coefficients = {0.1};
            }),
            "model: sinkhorn is no loss and has no {model.experts.router.coefficients}");
  EXPECT_EQ(said([](ModelConfig& m) {
              m.experts.router.balancing = {Balancing::sinkhorn};
              m.experts.router.score = RouterScore::sigmoid;
            }),
            "model: sinkhorn has scores of its own: leave {model.experts.router.score}, "
            "{model.experts.router.softmax_first}, {model.experts.router.groups} and "
            "{model.experts.router.scaling} as they are built in");
  EXPECT_EQ(said([](ModelConfig& m) {
              m.experts.router.balancing = {Balancing::sinkhorn};
              m.experts.router.capacity = 1;
            }),
            "model: sinkhorn shares tokens out evenly: leave {model.experts.router.capacity} out");
}

TEST(ExpertSettings, refuse_exact_sums_of_a_layer_that_several_further_tokens_go_through) {
  EXPECT_EQ(said([](ModelConfig& m) {
              m.ahead = {.depths = 2, .repeated = true};
              m.exact = true;
            }),
            "model: a layer of experts that guesses several further tokens adds up its uses in an order that "
            "depends on the layout: leave {model.exact} or {model.ahead.repeated} out");
}

TEST(ExpertSettings, refuse_a_loss_of_the_step_where_all_layouts_give_the_same_bits) {
  EXPECT_EQ(said([](ModelConfig& m) {
              m.experts.router.balancing = {Balancing::global_aux_loss};
              m.exact = true;
            }),
            "model: global_aux_loss looks at the microbatches that came before, so its bits depend on the "
            "layout: leave {model.exact} out, or take seq_aux_loss");
}
