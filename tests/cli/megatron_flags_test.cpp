// What people who come from Megatron-LM type. That every flag is known is in dialect_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dry_run.h"

using namespace weft;
using namespace weft::cli;

namespace {

using Words = std::vector<std::string_view>;

CheckpointConfig checkpoint_of(const Words& words) { return read_command(words)->config.checkpoint; }

std::string refusal(const Words& words) {
  try {
    (void)read_command(words);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST(MegatronsFlags, that_are_gone_stand_for_no_beginning_of_others) {
  EXPECT_EQ(refusal({"--moe-frequency", "2"}),
            "--moe-frequency is gone from Megatron-LM; write --moe-layer-freq");
  EXPECT_THAT(refusal({"--moe-freq", "2"}), ::testing::StartsWith("--moe-freq is not a flag"));
}

TEST(MegatronsFlags, save_more_often_and_keep_the_newest_of_these) {
  const CheckpointConfig both =
      checkpoint_of({"--non-persistent-save-interval", "5", "--save-interval", "20"});
  EXPECT_EQ(both.interval, 5);
  EXPECT_EQ(both.retain_interval, 20);
  EXPECT_EQ(both.keep_last, 0);
  const CheckpointConfig alone = checkpoint_of({"--non-persistent-save-interval", "5"});
  EXPECT_EQ(alone.interval, 5);
  EXPECT_EQ(alone.retain_interval, 0);
  EXPECT_EQ(alone.keep_last, 1);
  EXPECT_EQ(checkpoint_of({"--non-persistent-save-interval", "5", "--save-keep-last", "3"}).keep_last, 3);
  EXPECT_EQ(refusal({"--non-persistent-save-interval", "7", "--save-interval", "20"}),
            "--non-persistent-save-interval: --save-interval 20 is not a multiple of it: saves of both kinds "
            "lie in --save");
  EXPECT_EQ(refusal({"--non-persistent-save-interval", "5", "--save-retain-interval", "20"}),
            "--non-persistent-save-interval: --save-retain-interval says which checkpoints stay, too: leave "
            "one of them out");
  for (const char* wrong : {"0", "-5", "()", "1 2"})
    EXPECT_EQ(refusal({"--non-persistent-save-interval", wrong}),
              "--non-persistent-save-interval: expected one number of 1 or more")
        << wrong;
}

TEST(MegatronsFlags, recompute_what_is_never_kept) {
  const auto modules = [](Words words) {
    words.insert(words.end(), {"--recompute-granularity", "selective"});
    return read_command(words)->config.model.recompute.modules;
  };
  EXPECT_EQ(modules({"--recompute-modules", "moe_act"}), std::vector<RecomputeModule>{});
  EXPECT_EQ(modules({"--recompute-modules", "moe_act", "layernorm"}), std::vector{RecomputeModule::norm});
  EXPECT_EQ(modules({"--recompute-modules", "gdn_norm_out"}), std::vector<RecomputeModule>{});
  EXPECT_EQ(modules({"--recompute-modules", "shared_experts"}), std::vector{RecomputeModule::shared_experts});
}

TEST(MegatronsFlags, describe_layers_of_one_thing_each) {
  const auto config = [](Words words) { return read_command(words)->config; };
  const TrainConfig c =
      config({"--hybrid-layer-pattern", "M-*E|MG-E/*E/*E", "--mamba-num-heads", "32", "--mamba-head-dim",
              "16", "--mamba-state-dim", "64", "--mamba-num-groups", "4"});
  EXPECT_EQ(c.model.hybrid.layers, "M-*EMG-E");
  EXPECT_EQ(c.model.layers, 8);
  EXPECT_EQ(c.model.hybrid.ahead, "*E");
  EXPECT_EQ(c.model.ahead.depths, 2);
  EXPECT_EQ(c.parallel.layout, "Etttt|ttttmmL");
  EXPECT_EQ(c.model.state.heads, 32);
  EXPECT_EQ(c.model.state.head_channels, 16);
  EXPECT_EQ(c.model.state.channels, 64);
  EXPECT_EQ(c.model.state.groups, 4);
  const TrainConfig old = config({"--hybrid-override-pattern", "M+-/", "--mtp-num-layers", "1",
                                  "--mtp-hybrid-override-pattern", "M", "--is-hybrid-model"});
  EXPECT_EQ(old.model.hybrid.layers, "M*-");
  EXPECT_TRUE(old.model.latent.on);
  EXPECT_EQ(old.model.hybrid.ahead, "M");
  EXPECT_EQ(old.parallel.layout, "");
  EXPECT_NO_THROW(config({"--spec", "megatron.core.models.hybrid.hybrid_layer_specs", "hybrid_stack_spec",
                          "--hybrid-layer-pattern", "M"}));
}

TEST(MegatronsFlags, say_which_values_are_empty) {
  const std::vector<std::string_view> words{"--save", ""};
  EXPECT_THAT(read_command(words)->notices,
              testing::Contains("no effect here: --save (its value is empty: is a variable of the script not "
                                "set?)"));
}

TEST(MegatronsFlags, train_no_other_model_where_layers_of_one_thing_each_are_not_said) {
  const auto completed = [](const Words& words) { return [words] { complete(*read_command(words), 1); }; };
  EXPECT_THAT(
      completed({"--spec", "megatron.core.models.mamba.mamba_layer_specs", "mamba_stack_spec"}),
      testing::ThrowsMessage<Error>("--spec asks for layers of one thing each, and nothing says which: give "
                                    "--hybrid-layer-pattern, a letter a layer, M for a state space"));
  EXPECT_THAT(completed({"--is-hybrid-model"}),
              testing::ThrowsMessage<Error>(testing::StartsWith("--is-hybrid-model asks for layers")));
}

TEST(MegatronsFlags, refuse_letters_that_say_two_things) {
  EXPECT_EQ(refusal({"--hybrid-layer-pattern", "MD"}),
            "--hybrid-layer-pattern: 'MD' has layers of sparse attention, D, which weft cannot do yet");
  EXPECT_EQ(
      refusal({"--hybrid-layer-pattern", "M*+"}),
      "--hybrid-layer-pattern: 'M*+' has layers of latent attention, +, and of the other, *: take one of "
      "them");
  EXPECT_EQ(refusal({"--hybrid-layer-pattern", "M*/M/*"}),
            "--hybrid-layer-pattern: further tokens are guessed by layers that are alike, found 'M' and '*'");
  EXPECT_EQ(
      refusal({"--hybrid-layer-pattern", "M*/M", "--mtp-num-layers", "2"}),
      "--hybrid-layer-pattern: there are 1 parts behind a slash, one a further token, and --mtp-num-layers "
      "says 2");
  EXPECT_EQ(
      refusal({"--hybrid-layer-pattern", "M|*", "--pipeline-model-parallel-layout", "Et|tL"}),
      "--hybrid-layer-pattern: '|' cuts layers into stages, and so does --pipeline-model-parallel-layout: "
      "leave one of them out");
}

TEST(MegatronsFlags, describe_linear_attention) {
  const auto model = [](Words words) {
    words.insert(words.begin(),
                 {"--experimental-attention-variant", "gated_delta_net", "--linear-key-head-dim", "64",
                  "--linear-num-value-heads", "48", "--attention-output-gate"});
    return read_command(words)->config.model;
  };
  const ModelConfig c = model({"--linear-attention-freq", "4"});
  EXPECT_TRUE(c.delta.on && c.attention_gate);
  EXPECT_EQ(c.delta.attends_every, 4);
  EXPECT_EQ(c.delta.key_channels, 64);
  EXPECT_EQ(c.delta.value_channels, 128);
  EXPECT_EQ(c.delta.key_heads, 16);
  EXPECT_EQ(c.delta.value_heads, 48);
  EXPECT_EQ(model({"--linear-attention-freq", "[1]*3+[0]"}).delta.layers, (std::vector{1, 1, 1, 0}));
  EXPECT_EQ(refusal({"--experimental-attention-variant", "dsa"}),
            "weft cannot do this yet: sparse attention: --experimental-attention-variant");
  EXPECT_EQ(refusal({"--experimental-attention-variant", "gdn2"}),
            "weft cannot do this yet: the second form of the gated delta rule: "
            "--experimental-attention-variant");
}

TEST(MegatronsFlags, of_megatron_deepspeed_say_the_same_in_other_words) {
  const auto command =
      read_command(Words{"--num-attention-heads", "8", "--num-key-value-heads", "2",
                         "--rotary-position-embeddings-theta", "5000", "--normalization", "rmsnorm",
                         "--enable-zbh1-pipeline", "--enable-zbh1-exact-semantics", "--cpu-optimizer"});
  EXPECT_EQ(command->fields.at("model.groups").write(), std::vector<std::string>{"2"});
  EXPECT_EQ(command->fields.at("model.rotary.base").write(), std::vector<std::string>{"5000"});
  EXPECT_EQ(command->fields.at("model.norm").write(), std::vector<std::string>{"rms"});
  EXPECT_EQ(command->fields.at("parallel.schedule").write(), std::vector<std::string>{"zb-h1"});
  EXPECT_EQ(refusal({"--normalization", "BatchNorm"}),
            "--normalization: 'BatchNorm' is not one of LayerNorm, RMSNorm, layernorm, rmsnorm");
  EXPECT_EQ(refusal({"--kill-switch-file", "stop"}),
            "weft cannot do this yet: a file that ends a run; SIGTERM saves and ends it: --kill-switch-file");
  EXPECT_EQ(refusal({"--ds-sequence-parallel-fpdt"}),
            "weft cannot do this yet: sequences that are attended to chunk by chunk; --context-parallel-size "
            "shares long ones out: --ds-sequence-parallel-fpdt");
}
