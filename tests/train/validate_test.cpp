#include "weft/train/validate.h"

#include "tests/train/completing.h"

using namespace weft;
using namespace weft::testing;
using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

TEST(Validate, takes_what_is_good_and_fills_in_the_rest) {
  const TrainConfig c = completed([](TrainConfig& t) { t.parallel.tp = 2; }, 8);
  EXPECT_EQ(c.parallel.dp, 4);
  EXPECT_EQ(c.batch.global, 8);
  EXPECT_EQ(c.eval.micro, 2);
  EXPECT_EQ(c.eval.global, 8);
  EXPECT_EQ(c.data.split, "969, 30, 1");
}

TEST(Validate, refuses_ranks_that_the_layout_cannot_share) {
  const auto tp = [](int n) { return [n](TrainConfig& c) { c.parallel.tp = n; }; };
  refused(tp(0), "--tensor-model-parallel-size 0 is not at least 1");
  refused([](TrainConfig& c) { c.parallel.pp = 0; }, "--pipeline-model-parallel-size 0 is not at least 1");
  refused([](TrainConfig& c) { c.parallel.cp = -1; }, "--context-parallel-size -1 is not at least 1");
  refused(tp(4),
          "6 ranks cannot be shared out: tensor 4 times pipeline 1 times context 1 is 4; take a multiple of "
          "4 ranks",
          6);
  refused([](TrainConfig& c) { c.parallel.zero = 4; }, "--zero-stage 4 is not 0, 1, 2 or 3");
}

TEST(Validate, refuses_layers_that_tensor_parallel_ranks_cannot_share) {
  refused([](TrainConfig& c) { c.parallel.tp = 3; },
          "4 attention heads cannot be shared by 3 tensor-parallel ranks");
  refused(
      [](TrainConfig& c) {
        c.model.heads = 12;
        c.model.channels = 8;
        c.model.groups = 6;
        c.parallel.tp = 4;
      },
      "6 query groups are neither a multiple nor a divisor of 4 tensor-parallel ranks");
  refused(
      [](TrainConfig& c) {
        c.model.ffn_hidden = 255;
        c.parallel.tp = 2;
      },
      "the MLP's width 255 cannot be shared by 2 tensor-parallel ranks");
}

TEST(Validate, takes_fewer_query_groups_than_ranks) {
  const TrainConfig c = completed([](TrainConfig& t) {
    t.model.groups = 2;
    t.parallel.tp = 4;
  });
  EXPECT_EQ(c.model.groups, 2);
}

TEST(Validate, turns_sequence_parallel_off_where_there_is_nothing_to_cut) {
  EXPECT_FALSE(completed([](TrainConfig& c) { c.parallel.sequence = true; }).parallel.sequence);
}

TEST(Validate, refuses_sequences_that_ranks_cannot_share) {
  refused(
      [](TrainConfig& c) {
        c.parallel.cp = 4;
        c.model.sequence = 60;
      },
      "sequence length 60 is not a multiple of 8, twice the context-parallel ranks");
  refused(
      [](TrainConfig& c) {
        c.parallel.tp = 4;
        c.parallel.sequence = true;
        c.model.sequence = 66;
      },
      "--sequence-parallel: 66 tokens of a rank cannot be shared by 4 tensor-parallel ranks");
  refused(
      [](TrainConfig& c) {
        c.parallel.tp = 2;
        c.parallel.cp = 4;
        c.parallel.context = ContextForm::heads;
      },
      "--cp-comm-type a2a: 2 key heads of a rank cannot be shared by 4 context-parallel ranks; take p2p or "
      "all_gather");
}

TEST(Validate, refuses_exact_sums_that_ranks_cannot_share) {
  const auto exact = [](const std::function<void(TrainConfig&)>& change) {
    return [change](TrainConfig& c) {
      c.model.exact = true;
      change(c);
    };
  };
  refused(exact([](TrainConfig&) {}),
          "--exact halves a batch again and again, which 3 data-parallel ranks cannot share: take a power of "
          "two",
          3);
  refused(exact([](TrainConfig& c) {
            c.parallel.tp = 3;
            c.model.heads = c.model.groups = 6;
            c.model.channels = 8;
            c.model.ffn_hidden = 24;
          }),
          "--exact adds eighths, which 3 tensor-parallel ranks cannot share: take 1, 2, 4 or 8", 3);
  refused(exact([](TrainConfig& c) {
            c.parallel.tp = 2;
            c.parallel.cp = 8;
            c.model.heads = c.model.groups = 16;
          }),
          "--exact adds eighths of the vocabulary, which 2 tensor-parallel times 8 context-parallel ranks "
          "cannot share: take 1, 2, 4 or 8 in all",
          16);
  refused(exact([](TrainConfig& c) { c.model.ffn_hidden = 12; }),
          "--exact adds eighths: the MLP's width, 12 is not a multiple of 8", 1);
}

TEST(Validate, refuses_buckets_of_nothing) {
  refused([](TrainConfig& c) { c.parallel.bucket_elements = -1; }, "--ddp-bucket-size -1 is not positive");
  refused([](TrainConfig& c) { c.parallel.buckets = -2; }, "--ddp-num-buckets -2 is not positive");
}

TEST(Validate, refuses_batches_that_ranks_cannot_share) {
  refused([](TrainConfig& c) { c.batch.micro = 0; },
          "--micro-batch-size is not set: how many samples a rank takes at once");
  refused([](TrainConfig& c) { c.batch.global = 7; },
          "global batch size 7 is not a multiple of micro batch size times data-parallel ranks, 2; the next "
          "smaller is 6");
  refused(
      [](TrainConfig& c) {
        c.batch.schedule = "0:2 1K:4";
        c.batch.global = 6;
      },
      "--step-batch-size-schedule ends with a batch of 4, and --global-batch-size 6 is another: leave it "
      "out");
  refused(
      [](TrainConfig& c) {
        c.batch.schedule = "0:2 1K:4";
        c.batch.round_down = true;
      },
      "--step-batch-size-schedule goes with neither --rampup-batch-size nor --decrease-batch-size-if-needed");
}

TEST(Validate, wants_one_length) {
  refused([](TrainConfig& c) { c.length.samples = 10; },
          "--train-iters and --train-samples both say how long to train: leave one out");
  refused([](TrainConfig& c) { c.length.iterations = 0; },
          "nothing says how long to train: --train-iters, --train-samples or --train-tokens");
  refused([](TrainConfig& c) { c.rate.warmup_samples = 10; },
          "--train-iters counts steps: use --lr-decay-iters, --lr-warmup-iters and --lr-wsd-decay-iters");
  refused(
      [](TrainConfig& c) {
        c.length = {.samples = 100};
        c.rate.decay_iterations = 10;
      },
      "--train-samples counts samples: use --lr-decay-samples, --lr-warmup-samples and "
      "--lr-wsd-decay-samples");
}

TEST(Validate, refuses_rates_that_no_schedule_has) {
  refused([](TrainConfig& c) { c.rate.peak.reset(); }, "--lr is not set: the learning rate after warm-up");
  refused([](TrainConfig& c) { c.rate.floor = -1; },
          "a learning rate is not 0 or more: --lr 0.001, --min-lr -1");
  refused([](TrainConfig& c) { c.rate.floor = 1; }, "--min-lr 1 is greater than --lr 0.001");
  refused([](TrainConfig& c) { c.rate.start = 1; }, "--lr-warmup-init 1 is greater than --lr 0.001");
  refused(
      [](TrainConfig& c) {
        c.rate.warmup_fraction = 0.1;
        c.rate.warmup_iterations = 5;
      },
      "--lr-warmup-fraction and a length of warm-up contradict each other: leave one out");
  refused([](TrainConfig& c) { c.rate.warmup_fraction = 1; },
          "--lr-warmup-fraction 1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.rate.warmup_iterations = 100; },
          "warm-up over 200 samples does not end before the decay at 200 samples");
  refused([](TrainConfig& c) { c.rate.style = RateStyle::wsd; },
          "--lr-decay-style WSD needs --lr-wsd-decay-iters or -samples between 1 and the decay at 200 "
          "samples, found 0");
}

TEST(Validate, refuses_what_no_optimizer_takes) {
  refused([](TrainConfig& c) { c.optimizer.beta1 = 1; }, "--adam-beta1 1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.optimizer.beta2 = -0.1; },
          "--adam-beta2 -0.1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.optimizer.momentum = 2; }, "--sgd-momentum 2 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.optimizer.epsilon = -1; }, "--adam-eps -1 is not 0 or more");
  refused([](TrainConfig& c) { c.optimizer.clip = -1; }, "--clip-grad -1 is not 0 or more");
  refused([](TrainConfig& c) { c.optimizer.weight_decay = -1; }, "--weight-decay -1 is not 0 or more");
  refused([](TrainConfig& c) { c.optimizer.weight_decay_end = 1; },
          "--start-weight-decay and --end-weight-decay need --weight-decay-incr-style linear or cosine");
  refused([](TrainConfig& c) { c.optimizer.weight_decay_growth = DecayGrowth::linear; },
          "--weight-decay-incr-style needs --start-weight-decay and --end-weight-decay");
  refused(
      [](TrainConfig& c) {
        c.optimizer.weight_decay_growth = DecayGrowth::cosine;
        c.optimizer.weight_decay_start = 0.2;
        c.optimizer.weight_decay_end = 0.1;
      },
      "weight decay cannot grow from 0.2 to 0.1");
}

TEST(Validate, refuses_precision_settings_that_contradict_each_other) {
  refused([](TrainConfig& c) { c.scaling.constant = 0; }, "--loss-scale 0 is not greater than 0");
  refused(
      [](TrainConfig& c) {
        c.model.precision = Precision::f16;
        c.scaling.initial = 0.5;
      },
      "--initial-loss-scale 0.5 is below --min-loss-scale 1");
  refused([](TrainConfig& c) { c.scaling.window = 0; }, "--loss-scale-window 0 is not at least 1");
  refused([](TrainConfig& c) { c.scaling.hysteresis = 0; }, "--hysteresis 0 is not at least 1");
  refused(
      [](TrainConfig& c) {
        c.model.exact = true;
        c.scaling.reduce_in_bf16 = true;
      },
      "--grad-reduce-in-bf16 rounds sums that --exact keeps whole: leave one of them out");
  refused([](TrainConfig& c) { c.guard.non_finite = NonFinite::rescale; },
          "--non-finite rescale needs --fp16, the only precision with a loss scale");
}

TEST(Validate, rescales_under_fp16_and_says_when_a_scale_is_for_nothing) {
  EXPECT_EQ(completed([](TrainConfig& c) { c.model.precision = Precision::f16; }).guard.non_finite,
            NonFinite::rescale);
  TrainConfig c = good();
  c.scaling.constant = 128;
  EXPECT_THAT(complete(c, 0), ElementsAre("no effect here: --loss-scale (only --fp16 scales the loss)"));
}

TEST(Validate, refuses_models_that_cannot_be) {
  refused([](TrainConfig& c) { c.model.hidden_dropout = 1; },
          "--hidden-dropout 1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.model.attention_dropout = -0.1; },
          "--attention-dropout -0.1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.model.rotary.percent = 1.5; },
          "--rotary-percent 1.5 is not between 0 and 1");
  refused([](TrainConfig& c) { c.model.norm_epsilon = 0; }, "--norm-epsilon 0 is not greater than 0");
  refused([](TrainConfig& c) { c.model.init.std = -1; }, "--init-method-std -1 is not 0 or more");
  refused(
      [](TrainConfig& c) {
        c.model.positions = Positions::rotary;
        c.model.rotary.base = 0;
      },
      "--rotary-base 0 is not greater than 0");
  refused([](TrainConfig& c) { c.model.rotary.scaling = RotaryScaling::llama3; },
          "positions are not rotary, so there are no angles to stretch: add --position-embedding-type rope");
  refused([](TrainConfig& c) { c.model.recompute.modules = {RecomputeModule::mlp}; },
          "--recompute-modules needs --recompute-granularity selective");
  refused([](TrainConfig& c) { c.model.recompute = {.what = Recompute::full, .layers = 5, .modules = {}}; },
          "--recompute-num-layers 5 is not between 1 and 4 layers");
}

TEST(Validate, recomputes_core_attention_when_selective_names_nothing) {
  const auto selective = [](TrainConfig& c) { c.model.recompute.what = Recompute::selective; };
  EXPECT_THAT(completed(selective).model.recompute.modules, ElementsAre(RecomputeModule::core_attention));
}

TEST(Validate, wants_data_from_one_place_and_a_vocabulary) {
  refused([](TrainConfig& c) { c.data.mock = false; },
          "nothing to train on: give --data-path, paths per split, or --mock-data");
  refused(
      [](TrainConfig& c) { c.data.paths = {"a"}; },
      "data come from one place: --data-path, paths per split, or --mock-data, and more than one was given");
  refused(
      [](TrainConfig& c) {
        c.data.mock = false;
        c.data.train_paths = {"a"};
        c.data.split = "1,1,1";
      },
      "--split cuts --data-path; paths per split are cut already");
  refused([](TrainConfig& c) { c.model.vocabulary = 0; },
          "nothing says which token ids may occur: give --tokenizer-type with its files, or --vocab-size");
  refused(
      [](TrainConfig& c) {
        c.model.vocabulary = 0;
        c.data.tokenizer.type = "NullTokenizer";
      },
      "--tokenizer-type NullTokenizer needs --vocab-size");
}

TEST(Validate, wants_to_know_when_to_save_and_what_to_load) {
  refused([](TrainConfig& c) { c.checkpoint.save = "dir"; },
          "--save dir needs --save-interval: after how many steps to write");
  refused(
      [](TrainConfig& c) {
        c.checkpoint.interval = 10;
        c.checkpoint.retain_interval = 15;
      },
      "--save-retain-interval 15 is not a multiple of --save-interval 10");
  refused([](TrainConfig& c) { c.checkpoint.finetune = true; },
          "--finetune needs --load: the weights to start from");
  refused([](TrainConfig& c) { c.checkpoint.use_args = true; },
          "--use-checkpoint-args needs --load: the checkpoint to ask");
  refused([](TrainConfig& c) { c.checkpoint.step = -1; }, "--ckpt-step -1 is not 0 or more");
  refused([](TrainConfig& c) { c.checkpoint.step = 5; },
          "--ckpt-step 5 needs --load: the checkpoints to choose from");
  refused([](TrainConfig& c) { c.checkpoint.in_background = true; }, "--async-save needs --save");
  refused([](TrainConfig& c) { c.log.progress = true; },
          "--log-progress needs --save: the directory of its progress.txt");
  refused([](TrainConfig& c) { c.log.timing_level = 3; }, "--timing-log-level 3 is not between 0 and 2");
  refused([](TrainConfig& c) { c.checkpoint.verify = true; },
          "--verify-resume needs --save or --load: what to compare with");
}

TEST(Validate, wants_checkpoints_to_keep_and_validations_to_rank_them) {
  refused([](TrainConfig& c) { c.checkpoint.keep_last = -1; },
          "--save-keep-last -1 and --save-keep-best 0 are not 0 or more");
  refused([](TrainConfig& c) { c.checkpoint.keep_last = 1; },
          "--save-keep-last and --save-keep-best need --save: the checkpoints to keep");
  refused(
      [](TrainConfig& c) {
        c.checkpoint.save = "dir";
        c.checkpoint.interval = 10;
        c.checkpoint.keep_best = 1;
        c.eval.interval = 4;
      },
      "--save-keep-best 1 needs a validation before every save: --save-interval 10 is not a multiple of "
      "--eval-interval 4");
}

TEST(Validate, refuses_evaluation_batches_that_ranks_cannot_share) {
  refused([](TrainConfig& c) { c.eval.global = 3; },
          "evaluation batch size 3 is not a multiple of micro batch size times data-parallel ranks, 2");
  refused([](TrainConfig& c) { c.eval.iterations = -1; }, "--eval-iters -1 is not 0 or more");
}

TEST(Validate, refuses_at_run_time_what_nothing_consumes_yet) {
  TrainConfig c = completed([](TrainConfig& t) { t.parallel.zero = 2; }, 2);
  EXPECT_THAT([&] { refuse_unsupported(c); },
              ThrowsMessage<Error>("weft cannot do this yet: --zero-stage 2 and 3: gradients and weights cut "
                                   "over data-parallel ranks"));
  c = completed([](TrainConfig&) {});
  EXPECT_NO_THROW(refuse_unsupported(c));
}

TEST(Validate, refuses_two_places_where_attention_begins_anew) {
  refused(
      [](TrainConfig& c) {
        c.data.between_documents = true;
        c.data.reset_attention = true;
      },
      "--dataloader-inter-document-masking begins anew with each document, --reset-position-ids and "
      "--reset-attention-mask behind each end-of-document token: leave one of them out");
}

TEST(Validate, refuses_names_of_validation_sets_that_are_one) {
  refused([](TrainConfig& c) { c.data.validation_names = {"web"}; },
          "--validation-set-names needs --multiple-validation-sets");
}

TEST(Validate, asks_for_an_order_that_layouts_share_in_exact_mode) {
  const Change cyclic = [](TrainConfig& c) {
    c.model.exact = true;
    c.data.order = SampleOrder::cyclic;
  };
  refused(cyclic,
          "--dataloader-type cyclic gives every data-parallel rank samples of its own, so another layout "
          "trains on others: give --no-data-sharding with --exact",
          2);
  EXPECT_EQ(completed(cyclic, 1).parallel.dp, 1);
}

TEST(Validate, says_where_sharding_has_nothing_to_shard) {
  TrainConfig c = good();
  c.data.sharded_cycles = false;
  EXPECT_THAT(complete(c, 1), ElementsAre("no effect here: --no-data-sharding (only --dataloader-type cyclic "
                                          "shuffles by rank)"));
}
