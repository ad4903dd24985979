// What does nothing without another flag is said, each with what it waits for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary.h"
#include "weft/base/format.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dry_run.h"

using namespace weft;
using namespace weft::cli;

namespace {

/// The notices of a tiny run with these words, for so many ranks that somebody launched.
std::string said(const std::string& words, int world = 0, std::string_view family = "gpt") {
  const std::string tiny =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 4 --lr "
      "1e-3 "
      "--train-iters 100 --mock-data --vocab-size 512 ";
  const std::string all = tiny + words;
  const std::vector<std::string_view> views = split(all, ' ');
  const auto command = read_command(views);
  command->config.model.kind = family;
  complete(*command, world);
  return join(command->notices, "\n");
}

struct Case {
  std::string_view words, flags, why;
};

void expect_said(std::span<const Case> cases) {
  for (const Case& c : cases)
    EXPECT_EQ(said(std::string(c.words)), text("no effect here: ", c.flags, " (", c.why, ")")) << c.words;
}

}  // namespace

TEST(Idle, flags_without_biases_wait_for_what_has_some) {
  expect_said(std::array{Case{"--normalization RMSNorm --disable-norm-bias", "--disable-norm-bias",
                              "only layer norms have biases"},
                         Case{"--disable-bias-linear --disable-projection-bias", "--disable-projection-bias",
                              "--disable-bias-linear leaves none"},
                         Case{"--disable-bias-linear --disable-mlp-bias", "--disable-mlp-bias",
                              "--disable-bias-linear leaves none"},
                         Case{"--disable-norm-gain --disable-norm-bias", "--disable-norm-bias",
                              "--disable-norm-gain leaves none"},
                         Case{"--qk-layernorm --qk-layernorm-turned", "--qk-layernorm-turned",
                              "only --position-embedding-type rope turns anything"}});
}

TEST(Idle, growth_of_queries_waits_for_layers_that_may_grow) {
  const std::string rope = "--position-embedding-type rope ";
  const std::vector<std::string> words{rope + "--query-growth-of all", rope + "--query-growth-every 4"};
  expect_said(std::array{
      Case{words[0], "--query-growth-of", "only --query-growth-every lets queries grow"},
      Case{words[1], "--query-growth-every", "only --no-rope-freq gives layers that turn nothing"}});
  EXPECT_EQ(said(words[1] + " --query-growth-of all"), "");
}

TEST(Idle, norms_of_latents_wait_for_latents) {
  const std::string_view why = "only --multi-latent-attention with --qk-layernorm norms latents";
  const std::string latents =
      "--position-embedding-type rope --disable-bias-linear --multi-latent-attention "
      "--latent-norm-epsilon 0.1";
  expect_said(std::array{Case{"--latent-norm-epsilon 0.1", "--latent-norm-epsilon", why},
                         Case{latents, "--latent-norm-epsilon", why}});
  EXPECT_EQ(said(latents + " --qk-layernorm"), "");
}

TEST(Idle, flags_of_conversations_wait_for_some) {
  const std::string_view why = "only --sft reads conversations";
  expect_said(std::array{Case{"--sft-tokenizer-prompt-format identity", "--sft-tokenizer-prompt-format", why},
                         Case{"--sft-loss answers", "--sft-loss", why}});
}

TEST(Idle, flags_of_documents_do_nothing_to_conversations) {
  const std::string words =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 4 --lr "
      "1e-3 "
      "--train-iters 100 --data-path talk.jsonl --vocab-size 512 --tokenizer-type SFTTokenizer "
      "--tokenizer-model words --sft --dataloader-inter-document-masking --allow-ambiguous-pad-tokens "
      "--data-cache-path kept";
  const std::vector<std::string_view> views = split(words, ' ');
  const auto command = read_command(views);
  complete(*command, 0);
  EXPECT_EQ(join(command->notices, "\n"),
            "no effect here: --dataloader-inter-document-masking (conversations of --sft never see each "
            "other)\nno effect here: --allow-ambiguous-pad-tokens (--sft pads with the token of its format)\n"
            "no effect here: --data-cache-path (no index of samples is kept)");
}

TEST(Idle, flags_of_experts_wait_for_experts) {
  const std::string_view why = "only --num-experts gives layers a router";
  expect_said(std::array{
      Case{"--moe-router-topk 1", "--moe-router-topk", why},
      Case{"--moe-aux-loss-coeff 0.1 --moe-z-loss-coeff 0.1 --moe-token-drop-policy position",
           "--moe-aux-loss-coeff, --moe-z-loss-coeff, --moe-token-drop-policy", why},
      Case{"--expert-tensor-parallel-size 1 --moe-per-layer-logging",
           "--moe-per-layer-logging, --expert-tensor-parallel-size", why},
      Case{"--num-experts 4 --moe-router-bias-update-rate 0.1", "--moe-router-bias-update-rate",
           "only --moe-router-enable-expert-bias moves by it"},
      Case{"--num-experts 4 --moe-ffn-hidden-size 32 --ffn-hidden-size 128", "--ffn-hidden-size",
           "no layer has an MLP; --moe-ffn-hidden-size says how wide experts are"},
      Case{"--num-experts 4 --moe-token-drop-policy position", "--moe-token-drop-policy",
           "only --moe-expert-capacity-factor drops rows"},
      Case{"--num-experts 4 --moe-expert-capacity-factor 1 --moe-pad-expert-input-to-capacity --exact",
           "--moe-pad-expert-input-to-capacity", "exact sums are over the rows that are"},
      Case{"--num-experts 4 --moe-router-load-balancing-type seq_aux_loss",
           "--moe-router-load-balancing-type", "only --moe-aux-loss-coeff gives losses a weight"},
      Case{"--num-experts 4 --moe-router-load-balancing-type none --moe-aux-loss-coeff 0.1",
           "--moe-aux-loss-coeff", "only --moe-router-load-balancing-type names losses"},
  });
  for (const char* reads : {"", " --moe-ffn-hidden-size 32 --moe-layer-freq 2"})
    EXPECT_EQ(said(text("--num-experts 4 --ffn-hidden-size 128", reads)), "");
  EXPECT_EQ(said("--num-experts 4 --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.1 "
                 "--moe-layer-freq 2"),
            "");
  EXPECT_EQ(
      said("--num-experts 4 --moe-expert-capacity-factor 1 --moe-pad-expert-input-to-capacity "
           "--context-parallel-size 2",
           2),
      "no effect here: --moe-pad-expert-input-to-capacity (ranks that share a sequence share the room of "
      "experts, too, and ask each other what they take of it)");
}

TEST(Idle, flags_of_the_model_wait_for_its_form) {
  expect_said(std::array{
      Case{"--recompute-activations", "--recompute-activations",
           "attention never stores its scores, nor do experts what they activate"},
      Case{"--recompute-granularity selective --recompute-modules core_attn",
           "--recompute-granularity, --recompute-modules",
           "attention never stores its scores, nor do experts what they activate"},
      Case{"--num-experts 4 --moe-router-score-function sigmoid --moe-router-pre-softmax",
           "--moe-router-pre-softmax", "it is about softmax, and --moe-router-score-function is another"},
      Case{"--mtp-loss-scaling-factor 0.5", "--mtp-loss-scaling-factor",
           "only --mtp-num-layers guesses further tokens"},
      Case{
          "--position-embedding-type rope --multi-latent-attention --qk-head-dim 8 --qk-pos-emb-head-dim 4 "
          "--v-head-dim 8 --kv-channels 12",
          "--kv-channels",
          "--qk-head-dim, --qk-pos-emb-head-dim and --v-head-dim say how wide heads of latent attention are"},
      Case{"--multi-latent-attention --num-query-groups 4", "--num-query-groups",
           "latent attention has a key for every head"},
      Case{"--token-drop-min-tokens 4 --token-drop-steps 4 --token-drop-max-tokens 8 --token-drop-multiple 2",
           "--token-drop-min-tokens, --token-drop-max-tokens, --token-drop-steps, --token-drop-multiple",
           "only --token-drop-layers lets tokens pass layers by"},
      Case{"--distribute-saved-activations", "--distribute-saved-activations",
           "only --recompute-granularity full recomputes layers"},
      Case{"--recompute-granularity full --recompute-method uniform --distribute-saved-activations",
           "--distribute-saved-activations",
           "only --tensor-model-parallel-size has ranks that would keep the same"},
      Case{"--fp32-residual-connection", "--fp32-residual-connection",
           "only --bf16 and --fp16 store anything in fewer bits"},
      Case{"--layer-drop-gamma 0.1", "--layer-drop-gamma",
           "only --layer-drop-theta below 1 leaves layers out"},
      Case{"--padded-vocab-size 1000 --make-vocab-size-divisible-by 64", "--make-vocab-size-divisible-by",
           "--padded-vocab-size says how many rows are stored"},
  });
}

TEST(Idle, no_warm_up_is_needed_to_start_as_deepspeed_does) {
  const support::TemporaryDirectory folder;
  const std::string file = (folder / "ds.json").string();
  std::ofstream(file)
      << R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-3}}})";
  EXPECT_THAT(said("--deepspeed --deepspeed_config " + file),
              ::testing::Not(::testing::HasSubstr("only a warm-up starts there")));
}

TEST(Idle, what_is_cut_anyway_is_not_cut_again) {
  const std::string words =
      "--recompute-granularity full --recompute-method uniform --distribute-saved-activations "
      "--tensor-model-parallel-size 2";
  EXPECT_EQ(said(words, 2), "");
  EXPECT_EQ(said(words + " --sequence-parallel", 2),
            "no effect here: --distribute-saved-activations (--sequence-parallel cuts all that is kept)");
}

TEST(Idle, flags_of_lion_and_adam_wait_for_their_weights) {
  const std::string_view lion = "only Lion reads it: --optimizer lion, or --muon-scalar-optimizer lion";
  expect_said(std::array{
      Case{"--lion-beta1 0.8", "--lion-beta1", lion},
      Case{"--optimizer muon --lion-beta2 0.8", "--lion-beta2", lion},
      Case{"--muon-scalar-optimizer lion", "--muon-scalar-optimizer", "only --optimizer muon reads it"},
      Case{"--optimizer muon --muon-scalar-optimizer lion --adam-beta1 0.8 --adam-eps 1e-6",
           "--adam-beta1, --adam-eps", "sgd and Lion have no second moment"},
  });
  EXPECT_EQ(said("--optimizer muon --muon-scalar-optimizer lion --lion-beta1 0.8"), "");
  EXPECT_EQ(said("--bf16 --fp32-residual-connection"), "");
}

TEST(Idle, flags_of_schedules_wait_for_what_changes) {
  expect_said(std::array{
      Case{"--lr-decay-style constant --min-lr 1e-5", "--min-lr", "a constant rate ends as it is"},
      Case{"--lr-decay-style constant --lr-decay-iters 50", "--lr-decay-iters",
           "a constant rate ends as it is"},
      Case{"--lr-warmup-init 1e-5", "--lr-warmup-init", "only a warm-up starts there"},
      Case{"--weight-decay 0.1 --weight-decay-incr-style linear --start-weight-decay 0 --end-weight-decay 1",
           "--weight-decay", "a decay that grows has --start-weight-decay and --end-weight-decay"},
      Case{"--apply-wd-to-qk-layernorm", "--apply-wd-to-qk-layernorm", "only --qk-layernorm has such norms"},
      Case{"--fp16 --non-finite stop", "--non-finite", "a loss scale that moves skips what is not finite"},
      Case{"--decrease-batch-size-if-needed", "--decrease-batch-size-if-needed",
           "every batch can be shared evenly"},
      Case{"--eval-interval 0 --start-eval-at-iter 4", "--start-eval-at-iter",
           "only --eval-interval validates on the way"},
      Case{"--eval-iters 0 --eval-interval 10 --eval-micro-batch-size 2",
           "--eval-interval, --eval-micro-batch-size", "nothing is evaluated"},
      Case{"--split 1,0,0 --eval-global-batch-size 8", "--eval-global-batch-size", "nothing is evaluated"},
  });
  EXPECT_EQ(said("--lr-decay-style constant --lr-decay-iters 50 --lr-warmup-fraction 0.1"), "");
  EXPECT_EQ(said("--fp16 --loss-scale 8 --non-finite stop"), "");
}

TEST(Idle, flags_of_ranks_wait_for_ranks) {
  const std::string_view peers = "only data-parallel and context-parallel ranks have gradients to add",
                         stages = "only --pipeline-model-parallel-size cuts layers into stages";
  expect_said(std::array{
      Case{"--use-distributed-optimizer --overlap-grad-reduce",
           "--use-distributed-optimizer, --overlap-grad-reduce", peers},
      Case{"--ddp-num-buckets 2 --ddp-bucket-size 1000 --grad-reduce-in-bf16",
           "--ddp-num-buckets, --ddp-bucket-size, --grad-reduce-in-bf16", peers},
      Case{"--ranks 2 --ddp-num-buckets 2 --ddp-bucket-size 1000", "--ddp-bucket-size",
           "--ddp-num-buckets says how large they are"},
      Case{"--use-tp-pp-dp-mapping", "--use-tp-pp-dp-mapping",
           "only stages and data-parallel ranks together have an order"},
      Case{"--account-for-loss-in-pipeline-split", "--account-for-loss-in-pipeline-split", stages},
      Case{"--account-for-embedding-in-pipeline-split", "--account-for-embedding-in-pipeline-split", stages},
  });
  EXPECT_EQ(said("--use-distributed-optimizer --overlap-grad-reduce", 2), "");
  EXPECT_EQ(said("--ranks 3", 2), "no effect here: --ranks 3 (a launcher started 2)");
}

TEST(Idle, flags_of_files_wait_for_files) {
  expect_said(std::array{
      Case{"--save-interval 2 --save-retain-interval 4", "--save-interval, --save-retain-interval",
           "only --save writes checkpoints"},
      Case{"--allow-fresh-start --override-opt-param-scheduler",
           "--allow-fresh-start, --override-opt-param-scheduler", "only --load reads a checkpoint"},
      Case{"--timing-log-option all", "--timing-log-option",
           "only --timing-log-level 1 and 2 time parts of a step"},
      Case{"--profile-step-start 2 --profile-step-end 4 --profile-ranks 0 --nvtx-ranges",
           "--profile-step-start, --profile-step-end, --profile-ranks, --nvtx-ranges",
           "only --profile shows steps to a profiler"},
      Case{"--data-order keyed --data-cache-path here", "--data-cache-path", "no index of samples is kept"},
      Case{"--data-cache-version 0.16 --data-cache-tokenizer x.json",
           "--data-cache-version, --data-cache-tokenizer", "no index of samples is kept"},
      Case{"--multiple-validation-sets", "--multiple-validation-sets", "there is one validation set"},
      Case{"--tokenizer-model x.model --tiktoken-pattern v1", "--tokenizer-model, --tiktoken-pattern",
           "only --tokenizer-type reads it"},
      Case{"--allow-ambiguous-pad-tokens", "--allow-ambiguous-pad-tokens",
           "only a token of a tokenizer fills samples up"},
  });
  EXPECT_EQ(said("--data-cache-path here --data-cache-version 0.16"), "");
  EXPECT_EQ(said("--data-order keyed", 0, "bert"),
            "no effect here: --data-order (samples of BERT and T5 are always stored in their order)");
}

TEST(Idle, sizes_of_state_spaces_wait_for_them) {
  const std::string_view states = "only M in --hybrid-layer-pattern gives state spaces";
  expect_said(std::array{
      Case{"--mamba-num-heads 4 --mamba-num-groups 4 --mamba-state-dim 32",
           "--mamba-num-heads, --mamba-num-groups, --mamba-state-dim", states},
      Case{"--mamba-head-dim 32 --mamba-conv-kernel-dim 3 --mamba-norm-epsilon 1e-6",
           "--mamba-head-dim, --mamba-conv-kernel-dim, --mamba-norm-epsilon", states},
  });
}

TEST(Idle, flags_of_eight_bits_wait_for_them_and_for_each_other) {
  const std::string_view delayed = "only --fp8-recipe delayed remembers earlier steps";
  expect_said(std::array{
      Case{"--fp8-margin 1 --no-fp8-wgrad", "--fp8-margin, --no-fp8-wgrad",
           "only --fp8-format rounds to eight bits"},
      Case{"--fp8-format hybrid --fp8-recipe tensorwise --fp8-margin 1", "--fp8-margin", delayed},
      Case{"--fp8-format e4m3 --fp8-recipe blockwise --fp8-amax-history-len 4", "--fp8-amax-history-len",
           delayed},
      Case{"--fp8-format e4m3 --fp8-recipe mxfp8 --fp8-amax-compute-algo max", "--fp8-amax-compute-algo",
           delayed},
      Case{"--fp8-format hybrid --fp8-amax-compute-algo max", "--fp8-amax-compute-algo",
           "only --fp8-amax-history-len above 1 remembers more than one step"},
      Case{"--fp8-format hybrid --fp8-amax-history-len 16", "--fp8-amax-history-len",
           "only --fp8-amax-compute-algo max looks at more than the latest step"},
      Case{"--fp8-format hybrid --num-layers-at-start-in-bf16 1", "--num-layers-at-start-in-bf16",
           "only --first-last-layers-bf16 leaves layers out"},
  });
  EXPECT_EQ(said("--fp8-format hybrid --fp8-amax-history-len 16 --fp8-amax-compute-algo max"), "");
}
