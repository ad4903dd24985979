// What batches, lengths and rates a run may have.
#include "tests/train/completing.h"
#include "weft/train/validate.h"

using namespace weft;
using namespace weft::testing;

TEST(Validate, refuses_buckets_of_nothing) {
  refused([](TrainConfig& c) { c.parallel.bucket_elements = -1; },
          "{parallel.bucket_elements} -1 is not positive");
  refused([](TrainConfig& c) { c.parallel.buckets = -2; }, "{parallel.buckets} -2 is not positive");
}

TEST(Validate, refuses_batches_that_ranks_cannot_share) {
  refused([](TrainConfig& c) { c.batch.micro = 0; },
          "{batch.micro} is not set: how many samples a rank takes at once");
  refused([](TrainConfig& c) { c.batch.global = 7; },
          "global batch size 7 is not a multiple of micro batch size times data-parallel ranks, 2; the next "
          "smaller is 6");
  refused(
      [](TrainConfig& c) {
        c.batch.schedule = "0:2 1K:4";
        c.batch.global = 6;
      },
      "{batch.schedule} ends with a batch of 4, and {batch.global} 6 is another: leave it "
      "out");
  refused(
      [](TrainConfig& c) {
        c.batch.schedule = "0:2 1K:4";
        c.batch.round_down = true;
      },
      "{batch.schedule} goes with neither {batch.rampup} nor {batch.round_down}");
}

TEST(Validate, refuses_more_microbatches_than_a_step_can_have) {
  const auto batch = [](std::int64_t global) {
    return [global](TrainConfig& c) { c.batch.global = global; };
  };
  EXPECT_EQ(completed(batch(2'000'000)).batch.global, 2'000'000);
  refused(batch(2'000'002),
          "{batch.global} 2000002 is 1000001 microbatches a rank, more than 1000000: take a larger "
          "{batch.micro} than 2, a smaller batch or more data-parallel ranks");
  EXPECT_EQ(completed(batch(2'000'004), 2).batch.global, 2'000'004);
  refused(
      [](TrainConfig& c) { c.batch.schedule = "0:4 1M:4M 2M:4"; },
      "{batch.schedule}: a batch of 4000000 is 2000000 microbatches a rank, more than 1000000: take a larger "
      "{batch.micro} than 2, a smaller batch or more data-parallel ranks");
  refused(
      [](TrainConfig& c) {
        c.model.exact = true;
        c.model.vocabulary = 256;
        c.batch.global = 1'000'002;
      },
      "{batch.global} 1000002 is 1000002 sequences a rank, more than 1000000: take a smaller batch or more "
      "data-parallel ranks");
  refused(
      [](TrainConfig& c) {
        c.eval.micro = 1;
        c.eval.global = 1'000'001;
      },
      "{eval.global} 1000001 is 1000001 microbatches a rank, more than 1000000: take a larger {eval.micro} "
      "than 1, a smaller batch or more data-parallel ranks");
}

// Before a pipeline's schedule of so many is made, which would take all memory.
TEST(Validate, refuses_more_microbatches_than_a_pipeline_can_plan) {
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 2;
        c.parallel.virtual_stages = 2;
        c.batch.global = 1'000'004;
        c.batch.micro = 1;
      },
      "{batch.global} 1000004 is 1000004 microbatches a rank, more than 1000000: take a larger {batch.micro} "
      "than 1, a smaller batch or more data-parallel ranks");
  refused(
      [](TrainConfig& c) {
        c.model.layers = 8;
        c.parallel.pp = 4;
        c.parallel.virtual_stages = 2;
        c.batch.micro = 1;
        c.batch.global = 500'004;
      },
      "{batch.global} 500004 is 500004 microbatches through 8 stages, more than 4000000 in all: take a "
      "larger "
      "{batch.micro} than 1, a smaller batch or more data-parallel ranks");
}

TEST(Validate, refuses_more_than_dropout_of_attention_can_number) {
  const auto longer = [](double dropout) {
    return [dropout](TrainConfig& c) {
      c.model.sequence = 1'048'577;
      c.model.attention_dropout = dropout;
    };
  };
  refused(longer(0.1),
          "{model.sequence} 1048577 is more than the 1048576 that dropout of attention can number: set "
          "{model.attention_dropout} to 0");
  EXPECT_EQ(completed(longer(0)).model.sequence, 1'048'577);
  EXPECT_EQ(completed([&](TrainConfig& c) {
              longer(0.1)(c);
              c.eval.skip_train = true;
            }).model.sequence,
            1'048'577);
  refused(
      [](TrainConfig& c) {
        c.model.kind = "t5";
        c.model.decoder_sequence = 1'048'577;
      },
      "{model.decoder_sequence} 1048577 is more than the 1048576 that dropout of attention can number: set "
      "{model.attention_dropout} to 0");
  refused(
      [](TrainConfig& c) {
        c.model.heads = 8'388'609;
        c.model.channels = 1;
      },
      "{model.heads} 8388609 is more than the 8388608 that dropout of attention can number: set "
      "{model.attention_dropout} to 0");
}

TEST(Validate, wants_one_length) {
  refused([](TrainConfig& c) { c.length.samples = 10; },
          "{length.iterations} and {length.samples} both say how long to train: leave one out");
  refused([](TrainConfig& c) { c.length.iterations = 0; },
          "nothing says how long to train: {length.iterations}, {length.samples} or {length.tokens}, of 1 or "
          "more");
  refused([](TrainConfig& c) { c.rate.warmup_samples = 10; },
          "{length.iterations} counts steps: use {rate.decay_iterations}, {rate.warmup_iterations} and "
          "{rate.anneal_iterations}");
  refused(
      [](TrainConfig& c) {
        c.length = {.samples = 100};
        c.rate.decay_iterations = 10;
      },
      "{length.samples} counts samples: use {rate.decay_samples}, {rate.warmup_samples} and "
      "{rate.anneal_samples}");
}

TEST(Validate, refuses_rates_that_no_schedule_has) {
  refused([](TrainConfig& c) { c.rate.peak.reset(); },
          "{rate.peak} is not set: the learning rate after warm-up");
  refused([](TrainConfig& c) { c.rate.floor = -1; },
          "a learning rate is not 0 or more: {rate.peak} 0.001, {rate.floor} -1");
  refused([](TrainConfig& c) { c.rate.floor = 1; }, "{rate.floor} 1 is greater than {rate.peak} 0.001");
  refused([](TrainConfig& c) { c.rate.start = 1; }, "{rate.start} 1 is greater than {rate.peak} 0.001");
  refused(
      [](TrainConfig& c) {
        c.rate.warmup_fraction = 0.1;
        c.rate.warmup_iterations = 5;
      },
      "{rate.warmup_fraction} and a length of warm-up contradict each other: leave one out");
  refused([](TrainConfig& c) { c.rate.warmup_fraction = 1; },
          "{rate.warmup_fraction} 1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.rate.warmup_iterations = 100; },
          "warm-up over 200 samples does not end before the decay at 200 samples");
  refused([](TrainConfig& c) { c.rate.style = RateStyle::wsd; },
          "{rate.style=wsd} needs {rate.anneal_iterations} or -samples between 1 and the decay at 200 "
          "samples, found 0");
  refused(
      [](TrainConfig& c) {
        c.rate.style = RateStyle::one_cycle;
        c.rate.decay_tokens = 5;
      },
      "{rate.style} one_cycle counts steps: leave {rate.warmup_fraction}, {rate.warmup_samples}, "
      "{rate.warmup_tokens}, {rate.decay_samples} and {rate.decay_tokens} out");
}

TEST(Validate, refuses_betas_that_cannot_move_as_asked) {
  const auto cycle = [](const Change& more) {
    return [=](TrainConfig& c) {
      c.rate.style = RateStyle::one_cycle;
      c.rate.cycle = {.up = 10, .momentum = true};
      more(c);
    };
  };
  refused(cycle([](TrainConfig& c) { c.optimizer.kind = OptimizerKind::sgd; }),
          "{rate.style} one_cycle moves betas, and {optimizer.kind=sgd} has none that may move: take adam, "
          "lamb or "
          "lion, or a cycle without momentum");
  refused(cycle([](TrainConfig& c) { c.rate.cycle.least_momentum = 0.95; }),
          "{rate.style} one_cycle: its least momentum 0.95 is greater than its most, 0.9");
  const auto grows = cycle([](TrainConfig& c) {
    c.rate.cycle.decay_steps = 1;
    c.rate.cycle.momentum_growth = 0.0625;
  });
  refused(
      grows,
      "{rate.style} one_cycle: its momentum would be 5.34375 in step 100, and must stay below 1: let it grow "
      "less after the cycle");
  EXPECT_NO_THROW((void)completed([&](TrainConfig& c) {
    grows(c);
    c.length.iterations = 21;
  }));
}

TEST(Validate, rounds_evaluation_batches_down_as_those_of_training) {
  const auto down = [](TrainConfig& c) {
    c.batch.global = 7;
    c.batch.round_down = true;
  };
  EXPECT_EQ(completed(down, 2).eval.global, 4);
}
