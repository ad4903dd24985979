#include "weft/train/validate.h"

#include "tests/train/completing.h"

using namespace weft;
using namespace weft::testing;
using ::testing::ElementsAre;

TEST(Validate, takes_what_is_good_and_fills_in_the_rest) {
  const TrainConfig c = completed([](TrainConfig& t) { t.parallel.tp = 2; }, 8);
  EXPECT_EQ(c.parallel.dp, 4);
  EXPECT_EQ(c.batch.global, 8);
  EXPECT_EQ(c.eval.micro, 2);
  EXPECT_EQ(c.eval.global, 8);
  EXPECT_EQ(c.data.split, "969, 30, 1");
}

TEST(Validate, has_a_gpu_make_more_logits_at_once) {
  const auto on = [](const char* device) {
    return completed([=](TrainConfig& c) { c.run.device = device; }, 1).model.logits_at_once;
  };
  EXPECT_EQ(on("cpu:fast"), 1024);
  EXPECT_EQ(on("cuda:1"), 4096);
}

TEST(Validate, refuses_ranks_that_the_layout_cannot_share) {
  const auto tp = [](int n) { return [n](TrainConfig& c) { c.parallel.tp = n; }; };
  refused(tp(0), "{parallel.tp} 0 is not at least 1");
  refused([](TrainConfig& c) { c.parallel.pp = 0; }, "{parallel.pp} 0 is not at least 1");
  refused([](TrainConfig& c) { c.parallel.cp = -1; }, "{parallel.cp} -1 is not at least 1");
  refused(tp(4),
          "6 ranks cannot be shared out: tensor 4 times pipeline 1 times context 1 is 4; take a multiple of "
          "4 ranks",
          6);
  refused([](TrainConfig& c) { c.parallel.zero = 4; }, "{parallel.zero} 4 is not 0, 1, 2 or 3");
}

TEST(Validate, refuses_to_compare_steps_in_two_ways) {
  refused(
      [](TrainConfig& c) {
        c.guard.faults = FaultCheck::report;
        c.guard.rerun_interval = 2;
      },
      "{guard.rerun_interval} 2 goes on with what came out twice alike, {guard.faults=report} with what "
      "comes "
      "out the second time, however far it is from the first: leave one of them out");
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

TEST(Validate, refuses_layers_that_remember_where_ranks_cannot_share_them) {
  const auto remembers = [](auto change) {
    return [change](TrainConfig& c) {
      c.model.activation = Activation::silu;
      c.model.delta = {.on = true, .attends_every = 2, .key_heads = 6, .value_heads = 6};
      change(c);
    };
  };
  refused(remembers([](TrainConfig& c) { c.parallel.tp = 4; }),
          "{model.delta.key_heads} 6 cannot be shared by 4 tensor-parallel ranks");
  refused(
      remembers([](TrainConfig& c) {
        c.parallel.tp = 2;
        c.parallel.cp = 2;
      }),
      "{model.delta.key_heads}: 3 key heads of a rank cannot be shared by 2 context-parallel ranks, which "
      "trade them in layers that remember");
  refused(remembers([](TrainConfig& c) { c.data.reset_attention = true; }),
          "{model.delta.on}: layers that remember go on from one document to the next: leave "
          "{data.between_documents} and {data.reset_attention} out");
  const auto states = [](auto change) {
    return [change](TrainConfig& c) {
      c.model.hybrid.layers = std::string(std::size_t(c.model.layers), 'M');
      c.model.state = {.heads = 12, .groups = 6};
      change(c);
    };
  };
  refused(states([](TrainConfig& c) { c.parallel.tp = 4; }),
          "{model.state.groups} 6 cannot be shared by 4 tensor-parallel ranks");
  refused(states([](TrainConfig& c) {
            c.parallel.tp = 2;
            c.parallel.cp = 2;
          }),
          "{model.state.groups}: 3 groups of a rank cannot be shared by 2 context-parallel ranks, which "
          "trade them in "
          "state spaces");
  refused(states([](TrainConfig& c) { c.data.reset_attention = true; }),
          "{model.hybrid.layers}: state spaces go on from one document to the next: leave "
          "{data.between_documents} and {data.reset_attention} out");
  refused(
      [](TrainConfig& c) {
        c.model.attention_gate = c.model.exact = true;
        c.model.groups = 2;
        c.parallel.tp = 4;
      },
      "{model.attention_gate}: in exact mode 4 tensor-parallel ranks cannot share 2 query groups");
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
      "{parallel.sequence}: 66 tokens of a rank cannot be shared by 4 tensor-parallel ranks");
  refused(
      [](TrainConfig& c) {
        c.parallel.tp = 2;
        c.parallel.cp = 4;
        c.parallel.context = ContextForm::heads;
      },
      "{parallel.context=heads}: 2 key heads of a rank cannot be shared by 4 context-parallel ranks; take "
      "p2p or "
      "all_gather");
}

TEST(Validate, refuses_levels_of_context_parallelism_that_do_not_fit) {
  const auto levels = [](std::vector<int> sizes) {
    return [sizes = std::move(sizes)](TrainConfig& c) {
      c.parallel.cp = 6;
      c.model.sequence = 48;
      c.parallel.context = ContextForm::two_levels;
      c.parallel.context_levels = sizes;
    };
  };
  refused(levels({}),
          "{parallel.context=two_levels} needs {parallel.context_levels}: how many ranks trade heads, and "
          "how many rings go on");
  refused(levels({2, 3, 1}), "{parallel.context_levels} has 3 numbers, a2a+p2p has two levels");
  refused(levels({2, 2}), "{parallel.context_levels} 2 2 is 4 ranks, {parallel.cp} 6");
  refused(levels({3, 2}),
          "{parallel.context=two_levels}: 4 key heads of a rank cannot be shared by 3 context-parallel "
          "ranks; take p2p "
          "or all_gather");
  refused(
      [](TrainConfig& c) {
        c.parallel.context_layers = {ContextForm::ring, ContextForm::heads};
      },
      "{parallel.context} has 2 words, the model 4 layers: give one for all, or one for each");
}

TEST(Validate, refuses_exact_sums_that_ranks_cannot_share) {
  const auto exact = [](const std::function<void(TrainConfig&)>& change) {
    return [change](TrainConfig& c) {
      c.model.exact = true;
      change(c);
    };
  };
  refused(exact([](TrainConfig&) {}),
          "{model.exact} halves a batch again and again, which 3 data-parallel ranks cannot share: take a "
          "power of "
          "two",
          3);
  refused(exact([](TrainConfig& c) {
            c.parallel.tp = 3;
            c.model.heads = c.model.groups = 6;
            c.model.channels = 8;
            c.model.ffn_hidden = 24;
          }),
          "{model.exact} adds eighths, which 3 tensor-parallel ranks cannot share: take 1, 2, 4 or 8", 3);
  refused(
      exact([](TrainConfig& c) {
        c.parallel.tp = 2;
        c.parallel.cp = 8;
        c.model.heads = c.model.groups = 16;
      }),
      "{model.exact} adds eighths of the vocabulary, which 2 tensor-parallel times 8 context-parallel ranks "
      "cannot share: take 1, 2, 4 or 8 in all",
      16);
  refused(exact([](TrainConfig& c) { c.model.ffn_hidden = 12; }),
          "{model.exact} adds eighths: the MLP's width, 12 is not a multiple of 8", 1);
}

TEST(Validate, refuses_precision_settings_that_contradict_each_other) {
  refused([](TrainConfig& c) { c.scaling.constant = 0; }, "{scaling.constant} 0 is not greater than 0");
  refused(
      [](TrainConfig& c) {
        c.model.precision = Precision::f16;
        c.scaling.initial = 0.5;
      },
      "{scaling.initial} 0.5 is below {scaling.least} 1");
  refused([](TrainConfig& c) { c.scaling.window = 0; }, "{scaling.window} 0 is not at least 1");
  refused([](TrainConfig& c) { c.scaling.hysteresis = 0; }, "{scaling.hysteresis} 0 is not at least 1");
  refused(
      [](TrainConfig& c) {
        c.model.exact = true;
        c.scaling.reduce_in_bf16 = true;
      },
      "{scaling.reduce_in_bf16} rounds sums that {model.exact} keeps whole: leave one of them out");
  refused([](TrainConfig& c) { c.guard.non_finite = NonFinite::rescale; },
          "{guard.non_finite} rescale needs {model.precision=f16}, the only precision with a loss scale");
}

TEST(Validate, rescales_under_fp16_and_says_when_a_scale_is_for_nothing) {
  EXPECT_EQ(completed([](TrainConfig& c) { c.model.precision = Precision::f16; }).guard.non_finite,
            NonFinite::rescale);
  TrainConfig c = good();
  c.scaling.constant = 128;
  EXPECT_THAT(complete(c, 0),
              ElementsAre("no effect here: {scaling.constant} (only {model.precision=f16} scales the loss)"));
}

TEST(Validate, refuses_models_that_cannot_be) {
  refused([](TrainConfig& c) { c.model.hidden_dropout = 1; },
          "{model.hidden_dropout} 1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.model.attention_dropout = -0.1; },
          "{model.attention_dropout} -0.1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.model.rotary.percent = 1.5; },
          "{model.rotary.percent} 1.5 is not between 0 and 1");
  refused([](TrainConfig& c) { c.model.norm_epsilon = 0; }, "{model.norm_epsilon} 0 is not greater than 0");
  refused([](TrainConfig& c) { c.model.init.std = -1; }, "{model.init.std} -1 is not 0 or more");
  refused(
      [](TrainConfig& c) {
        c.model.positions = Positions::rotary;
        c.model.rotary.base = 0;
      },
      "{model.rotary.base} 0 is not greater than 0");
  refused([](TrainConfig& c) { c.model.rotary.scaling = RotaryScaling::llama3; },
          "positions are not rotary, so there are no angles to stretch: add {model.positions=rotary}");
  refused([](TrainConfig& c) { c.model.recompute.modules = {RecomputeModule::mlp}; },
          "{model.recompute.modules} needs {model.recompute.what=selective}");
  refused(
      [](TrainConfig& c) {
        c.model.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::latent_heads}};
      },
      "{model.recompute.modules} names heads that are made of latents: add {model.latent.on}");
  refused(
      [](TrainConfig& c) {
        c.model.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::experts}};
      },
      "{model.recompute.modules} names experts, and the model has none");
  refused(
      [](TrainConfig& c) {
        c.model.experts.count = 2;
        c.model.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::shared_experts}};
      },
      "{model.recompute.modules} names shared experts, and the model has none");
  refused([](TrainConfig& c) { c.model.recompute = {.what = Recompute::full, .layers = 5, .modules = {}}; },
          "{model.recompute.layers} 5 is not between 1 and 4 layers");
}

TEST(Validate, recomputes_core_attention_when_selective_names_nothing) {
  const auto selective = [](TrainConfig& c) { c.model.recompute.what = Recompute::selective; };
  EXPECT_THAT(completed(selective).model.recompute.modules, ElementsAre(RecomputeModule::core_attention));
}

TEST(Validate, wants_data_from_one_place_and_a_vocabulary) {
  refused([](TrainConfig& c) { c.data.mock = false; },
          "nothing to train on: give {data.paths}, paths per split, or {data.mock}");
  refused(
      [](TrainConfig& c) { c.data.paths = {"a"}; },
      "data come from one place: {data.paths}, paths per split, or {data.mock}, and more than one was given");
  refused(
      [](TrainConfig& c) {
        c.data.mock = false;
        c.data.train_paths = {"a"};
        c.data.split = "1,1,1";
      },
      "{data.split} cuts {data.paths}; paths per split are cut already");
  refused([](TrainConfig& c) { c.model.vocabulary = 0; },
          "nothing says which token ids may occur: give {data.tokenizer.type} with its files, or "
          "{model.vocabulary}");
  refused(
      [](TrainConfig& c) {
        c.model.vocabulary = 0;
        c.data.tokenizer.type = "NullTokenizer";
      },
      "{data.tokenizer.type} NullTokenizer needs {model.vocabulary}");
}

TEST(Validate, wants_to_know_when_to_save_and_what_to_load) {
  refused([](TrainConfig& c) { c.checkpoint.save = "dir"; },
          "{checkpoint.save} dir needs {checkpoint.interval}: after how many steps to write");
  refused(
      [](TrainConfig& c) {
        c.checkpoint.interval = 10;
        c.checkpoint.retain_interval = 15;
      },
      "{checkpoint.retain_interval} 15 is not a multiple of {checkpoint.interval} 10");
  refused([](TrainConfig& c) { c.checkpoint.finetune = true; },
          "{checkpoint.finetune} needs {checkpoint.load}: the weights to start from");
  refused([](TrainConfig& c) { c.checkpoint.use_args = true; },
          "{checkpoint.use_args} needs {checkpoint.load}: the checkpoint to ask");
  refused([](TrainConfig& c) { c.checkpoint.step = -1; }, "{checkpoint.step} -1 is not 0 or more");
  refused([](TrainConfig& c) { c.checkpoint.step = 5; },
          "{checkpoint.step} 5 needs {checkpoint.load}: the checkpoints to choose from");
  refused([](TrainConfig& c) { c.checkpoint.in_background = true; },
          "{checkpoint.in_background} needs {checkpoint.save}");
  refused([](TrainConfig& c) { c.log.progress = true; },
          "{log.progress} needs {checkpoint.save}: the directory of its progress.txt");
  refused([](TrainConfig& c) { c.log.timing_level = 3; }, "{log.timing_level} 3 is not between 0 and 2");
  refused([](TrainConfig& c) { c.checkpoint.verify = true; },
          "{checkpoint.verify} needs {checkpoint.save} or {checkpoint.load}: what to compare with");
  refused(
      [](TrainConfig& c) {
        c.checkpoint.verify = c.eval.skip_train = true;
        c.checkpoint.load = "there";
      },
      "{checkpoint.verify} reads the last batch again, and {eval.skip_train} opens no samples to train on: "
      "leave one of them out");
}

TEST(Validate, wants_checkpoints_to_keep_and_validations_to_rank_them) {
  refused([](TrainConfig& c) { c.checkpoint.keep_last = -1; },
          "{checkpoint.keep_last} -1 and {checkpoint.keep_best} 0 are not 0 or more");
  refused(
      [](TrainConfig& c) { c.checkpoint.keep_last = 1; },
      "{checkpoint.keep_last} and {checkpoint.keep_best} need {checkpoint.save}: the checkpoints to keep");
  refused(
      [](TrainConfig& c) {
        c.checkpoint.save = "dir";
        c.checkpoint.interval = 10;
        c.checkpoint.keep_best = 1;
        c.eval.interval = 4;
      },
      "{checkpoint.keep_best} 1 needs a validation before every save: {checkpoint.interval} 10 is not a "
      "multiple of "
      "{eval.interval} 4");
}

TEST(Validate, refuses_evaluation_batches_that_ranks_cannot_share) {
  refused([](TrainConfig& c) { c.eval.global = 3; },
          "evaluation batch size 3 is not a multiple of micro batch size times data-parallel ranks, 2: give "
          "another {eval.global}");
  refused([](TrainConfig& c) { c.eval.iterations = -1; }, "{eval.iterations} -1 is not 0 or more");
}

TEST(Validate, refuses_two_places_where_attention_begins_anew) {
  refused(
      [](TrainConfig& c) {
        c.data.between_documents = true;
        c.data.reset_attention = true;
      },
      "{data.between_documents} begins anew with each document, {data.reset_positions} and "
      "{data.reset_attention} behind each end-of-document token: leave one of them out");
}

TEST(Validate, refuses_names_of_validation_sets_that_are_one) {
  refused([](TrainConfig& c) { c.data.validation_names = {"web"}; },
          "{data.validation_names} needs {data.separate_validation}");
}

TEST(Validate, asks_for_an_order_that_layouts_share_in_exact_mode) {
  const Change cyclic = [](TrainConfig& c) {
    c.model.exact = true;
    c.data.order = SampleOrder::cyclic;
  };
  refused(cyclic,
          "{data.order=cyclic} gives every data-parallel rank samples of its own, so another layout "
          "trains on others: give {data.sharded_cycles=false} with {model.exact}",
          2);
  EXPECT_EQ(completed(cyclic, 1).parallel.dp, 1);
}

TEST(Validate, says_where_sharding_has_nothing_to_shard) {
  TrainConfig c = good();
  c.data.sharded_cycles = false;
  EXPECT_THAT(complete(c, 1),
              ElementsAre("no effect here: {data.sharded_cycles=false} (only {data.order=cyclic} "
                          "shuffles by rank)"));
}
