#include "weft/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "tests/plan/planned.h"
#include "tests/support/sanitized.h"
#include "weft/backend/open.h"
#include "weft/comm/threads.h"
#include "weft/ops/elementwise.h"
#include "weft/plan/quiet.h"
#include "weft/tensor/host.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"
#include "weft/train/validate.h"

using namespace weft;
using namespace weft::testing;

TEST(Plan, counts_what_one_rank_will_hold) { expect_the_plan_holds(tiny({.dp = 1})); }

TEST(Plan, counts_ranks_that_share_layers_and_batches) {
  expect_the_plan_holds(tiny({.tp = 2, .dp = 2, .sequence = true, .zero = 1}));
}

TEST(Plan, counts_ranks_that_share_gradients_and_weights) {
  expect_the_plan_holds(tiny({.dp = 2, .zero = 2}));
  expect_the_plan_holds(tiny({.tp = 2, .dp = 2, .sequence = true, .zero = 3}));
  expect_the_plan_holds(tiny({.pp = 2, .dp = 2, .zero = 3, .reduce_once = true}));
  expect_the_plan_holds(tiny({.dp = 4, .zero = 3, .wire = {.weights = true, .gradients = true}}));
}

TEST(Plan, counts_gradients_that_are_kept_in_bf16) {
  for (const int zero : {0, 1, 2, 3})
    expect_the_plan_holds(tiny({.dp = 2, .zero = zero}, [](TrainConfig& c) {
      c.model.precision = Precision::bf16;
      c.scaling.sum_in_bf16 = true;
    }));
}

// What is added to scores outweighs them, so every token chooses the experts of the last rank.
TEST(Plan, counts_a_rank_to_whose_experts_all_tokens_go) {
  const auto mixture = [](TrainConfig& c) {
    c.batch.micro = 4;
    c.model.experts.count = 4;
    c.model.experts.router.score = RouterScore::sigmoid;
    c.model.experts.router.expert_bias = true;
  };
  const auto crowd = [](Replica& replica) {
    replica.each_parameter([](Parameter& p) {
      if (p.name.ends_with(".expert_bias")) ops::fill(p.value.slice(0, 2, 2), 100);
    });
  };
  const TrainConfig c = tiny({.dp = 2, .ep = 2}, mixture);
  const KindOfRank kind = plan_for(c).kinds.front();
  const auto most = double(most_held(c, crowd).front());
  EXPECT_GT(kind.crowded, kind.memory.total_peak);
  EXPECT_NEAR(double(kind.crowded), most, 0.01 * most);
  EXPECT_EQ(plan_for(tiny({.dp = 2}, mixture)).kinds.front().crowded, 0);
  TrainConfig filled = c;  // whoever is chosen, experts compute as many rows
  filled.model.experts.router.capacity = 1;
  filled.model.experts.router.filled = true;
  EXPECT_EQ(plan_for(filled).kinds.front().crowded, 0);
}

// Sixteen samples, one at a time: more microbatches than are counted one by one.
TEST(Plan, says_what_communicators_count) {
  const auto six = [](TrainConfig& c) { c.model.layers = 6; };  // tied words in the first and the last
  const std::vector<TrainConfig> all{
      tiny({.dp = 2, .zero = 0}),
      tiny({.dp = 2, .zero = 1}),
      tiny({.dp = 2, .zero = 2}),
      tiny({.dp = 2, .zero = 3}),
      tiny({.tp = 2, .dp = 2, .sequence = true, .zero = 1}),
      tiny({.cp = 2, .dp = 2, .zero = 3}),
      tiny({.dp = 4, .zero = 3, .shard_groups = 2}),
      tiny({.dp = 4, .zero = 3, .near_ranks = 2}),
      tiny({.dp = 4, .zero = 3, .wire = {.weights = true, .gradients = true}}),
      tiny({.dp = 4, .zero = 3, .near_ranks = 2, .wire = {.weights = true, .gradients = true}}),
      tiny({.tp = 2, .pp = 2, .dp = 2}),
      tiny({.pp = 2, .dp = 1, .virtual_stages = 2}),
      tiny({.pp = 4, .dp = 1}),
      tiny({.pp = 2, .dp = 2, .zero = 3}),
      tiny({.pp = 6, .dp = 1}, six),
  };
  for (const TrainConfig& layout : some_of(all, 3)) expect_the_plan_sends(layout);
}

TEST(Plan, says_volumes_in_their_types) {
  const auto data = [](int zero, const std::function<void(TrainConfig&)>& change) {
    return plan_for(tiny({.dp = 2, .zero = zero}, change)).kinds[0].sends[Partners::data];
  };
  const auto bf16 = [](TrainConfig& c) { c.model.precision = Precision::bf16; };
  const auto wire = [](TrainConfig& c) {
    c.model.precision = Precision::bf16;
    c.scaling.reduce_in_bf16 = true;
  };
  const Sent whole = data(1, [](TrainConfig&) {}), narrow = data(1, bf16), narrower = data(1, wire);
  EXPECT_EQ(2 * narrow.of(Traffic::gathered), whole.of(Traffic::gathered));
  EXPECT_EQ(narrow.of(Traffic::sums), whole.of(Traffic::sums));
  EXPECT_NEAR(double(narrower.of(Traffic::sums)), 0.5 * double(whole.of(Traffic::sums)),
              0.01 * double(whole.of(Traffic::sums)));
}

TEST(Plan, counts_a_residual_stream_in_f32) {
  const auto of = [](Precision precision, bool in_f32) {
    return tiny({.tp = 2, .pp = 2, .dp = 1}, [&](TrainConfig& c) {
      c.model.precision = precision;
      c.model.residual_in_f32 = in_f32;
      c.model.tied_output = false;  // nothing but hidden states goes from stage to stage
    });
  };
  expect_the_plan_holds(of(Precision::bf16, true));
  expect_the_plan_sends(of(Precision::bf16, true));
  const auto between = [](const TrainConfig& c) {
    return plan_for(c).kinds[0].sends[Partners::pipeline].total();
  };
  EXPECT_EQ(between(of(Precision::bf16, true)), between(of(Precision::f32, false)));
  const auto wide = double(between(of(Precision::bf16, true)));
  EXPECT_NEAR(wide, 2.0 * double(between(of(Precision::bf16, false))), 0.01 * wide);  // a few scalars beside
}

// Of four inputs [16, 1, 32] in f32 half is kept, and one at a time is whole.
TEST(Plan, counts_a_part_of_kept_inputs) {
  const auto held = [](bool cut) {
    const TrainConfig c = tiny({.tp = 2, .dp = 1}, [&](TrainConfig& of) {
      of.model.recompute = {.what = Recompute::full, .cut = cut};
    });
    return plan_for(c).kinds[0].memory.peak[std::size_t(Use::activations)];
  };
  EXPECT_LE(held(true), held(false) - 2 * 16 * 32 * 4 + 16 * 32 * 4 / 2);
}

TEST(Plan, says_nothing_of_a_rank_that_is_alone) {
  EXPECT_EQ(plan_for(tiny({.dp = 1})).kinds[0].sends.total(), 0);
}

TEST(Plan, counts_groups_that_hold_the_same_shares) {
  expect_the_plan_holds(tiny({.dp = 4, .zero = 3, .shard_groups = 2}));
}

// Two moments of four bytes and a master, in files; what a rank holds is less by no more than that.
TEST(Plan, counts_states_that_lie_in_files) {
  const auto bf16 = [](TrainConfig& c) { c.model.precision = Precision::bf16; };
  const auto spilled = [&](TrainConfig& c) {
    bf16(c);
    c.optimizer.offload = {.on = true, .directory = "nowhere"};
  };
  const Plan whole = plan_for(tiny({.dp = 1}, bf16)), less = plan_for(tiny({.dp = 1}, spilled));
  EXPECT_EQ(whole.kinds[0].on_disk, 0);
  EXPECT_GE(less.kinds[0].on_disk, 12 * whole.parameters.total());
  EXPECT_FALSE(std::filesystem::exists("nowhere"));
}

TEST(Plan, counts_every_stage_of_a_pipeline) {
  const TrainConfig c = tiny({.pp = 4, .dp = 1});
  expect_the_plan_holds(c);
  const Plan plan = plan_for(c);
  EXPECT_EQ(plan.kinds.front().first, 0);
  EXPECT_EQ(plan.kinds.back().last, 3);
  EXPECT_GT(plan.kinds.front().memory.total_peak, plan.kinds[1].memory.total_peak);  // it has the embedding
}

// Twelve tokens at a time, a sample of sixteen is two pieces: more tokens than it has.
TEST(Plan, counts_samples_that_grow_at_their_largest) {
  const auto growing = [](data::ExcerptForm form) {
    return plan_for(tiny({.dp = 1},
                         [=](TrainConfig& c) {
                           c.curriculum.form = form;
                           c.curriculum.rule = {
                               .curve = data::LengthCurve::fixed_discrete, .lengths = {12, 16}, .until = {1}};
                         }))
        .kinds[0]
        .memory.total_peak;
  };
  const Plan whole = plan_for(tiny({.dp = 1})), pieces = plan_for(tiny({.dp = 1}, [](TrainConfig&c) {
                                                  c.model.sequence = 12;
                                                  c.model.max_positions = 16;
                                                  c.batch.micro = 2;
                                                  c.batch.global = 32;
                                                }));
  EXPECT_EQ(growing(data::ExcerptForm::truncate), whole.kinds[0].memory.total_peak);
  EXPECT_EQ(growing(data::ExcerptForm::reshape), pieces.kinds[0].memory.total_peak);
  EXPECT_GT(pieces.kinds[0].memory.total_peak, whole.kinds[0].memory.total_peak);
}

TEST(Plan, counts_ranks_that_share_a_sequence) { expect_the_plan_holds(tiny({.cp = 2, .dp = 1})); }

// The deeper the tree over sequences, the more sums wait: 16 microbatches are more than are counted one by
// one.
TEST(Plan, counts_the_sums_that_wait_in_exact_mode) {
  const auto exact = [](TrainConfig& c) {
    c.model.exact = true;
    c.model.channels = 8;
    c.model.vocabulary = 64;
  };
  expect_the_plan_holds(tiny({.dp = 1}, exact));
  expect_the_plan_holds(tiny({.pp = 2, .dp = 1}, exact));
  expect_the_plan_holds(tiny({.tp = 2, .dp = 1}, [&](TrainConfig& c) {
    exact(c);
    c.model.groups = 1;  // which both ranks share
  }));
}

// A microbatch of its own may be larger than training's; what forgets everything needs little of each layer.
TEST(Plan, counts_evaluations_by_their_own_microbatch) {
  const auto looks = [](TrainConfig& c) { c.eval.micro = c.eval.global = 64; };
  const TrainConfig c = tiny({.dp = 1}, looks);
  expect_the_plan_holds(c);
  const Plan plan = plan_for(c), trains = plan_for(tiny({.dp = 1}));
  EXPECT_GT(plan.kinds[0].memory.total_peak, 2 * trains.kinds[0].memory.total_peak);
  EXPECT_EQ(plan.kinds[0].training, trains.kinds[0].training);
  EXPECT_EQ(trains.kinds[0].training, trains.kinds[0].memory.total_peak);
  expect_the_plan_holds(tiny({.tp = 2, .dp = 2, .sequence = true, .zero = 3}, [](TrainConfig& config) {
    config.eval.micro = 32;
    config.eval.global = 64;
  }));
}

// What a stage sends lies there until its readers have it: a group of microbatches, however many there are.
TEST(Plan, counts_evaluations_in_every_stage_of_a_pipeline) {
  const auto looks = [](std::int64_t global) {
    return tiny({.pp = 2, .dp = 1}, [global](TrainConfig& c) {
      c.eval.micro = 8;
      c.eval.global = global;
    });
  };
  expect_the_plan_holds(looks(128));
  const auto activations = [&](std::int64_t global) {
    return plan_for(looks(global)).kinds[0].memory.peak[std::size_t(Use::activations)];
  };
  // Of each microbatch of 8 four numbers a token, and what 16 places and 8 samples take.
  const std::int64_t microbatch = 8 * looks(128).model.sequence * 4 * 4 + 64 + 64;
  EXPECT_EQ(activations(4096) - activations(128), (4096 - 128) / 8 * microbatch);
}

TEST(Plan, counts_evaluations_in_exact_mode) {
  expect_the_plan_holds(tiny({.dp = 1}, [](TrainConfig& c) {
    c.model.exact = true;
    c.model.channels = 8;
    c.model.vocabulary = 64;
    c.eval.micro = c.eval.global = 512;
  }));
}

TEST(Plan, counts_nothing_of_training_where_nobody_trains) {
  const TrainConfig c = tiny({.dp = 1}, [](TrainConfig& config) { config.eval.skip_train = true; });
  expect_the_plan_holds(c);
  EXPECT_LT(plan_for(c).kinds[0].memory.total_peak, plan_for(tiny({.dp = 1})).kinds[0].memory.total_peak);
}

TEST(Plan, counts_no_evaluation_where_there_is_none) {
  for (const auto& none : std::vector<std::function<void(TrainConfig&)>>{
           [](TrainConfig& c) { c.eval.iterations = 0; }, [](TrainConfig& c) { c.data.split = "1,0,0"; },
           [](TrainConfig& c) { c.data.split = "99,1,0"; },  // and no interval at which to validate
       }) {
    const Plan plan = plan_for(tiny({.dp = 1}, [&](TrainConfig& c) {
      c.eval.micro = c.eval.global = 64;
      none(c);
    }));
    EXPECT_EQ(plan.kinds[0].memory.total_peak, plan.kinds[0].training);
  }
}

TEST(Plan, says_how_much_a_step_takes) {
  const Plan plan = plan_for(tiny({.dp = 1}));
  EXPECT_EQ(plan.tokens, 16 * 16);
  EXPECT_EQ(plan.parameters.total(), count_parameters(tiny({.dp = 1}).model).total());
  EXPECT_EQ(plan.flops, 16 * training_flops(tiny({.dp = 1}).model, 16));
  ASSERT_EQ(plan.kinds.size(), 1u);
  EXPECT_EQ(plan.kinds[0].ranks, 1);
}

TEST(QuietWorld, knows_the_circles_of_a_layout_as_threads_make_them) {
  const ParallelLayout layout({.tp = 2, .cp = 2, .dp = 3, .pp = 2});
  const Colors colors = colors_of(layout);
  run_as_threads(layout.world(), [&](Communicator& world) {
    const ProcessMesh real(layout, world);
    QuietWorld alone(world.rank(), colors);
    const ProcessMesh quiet(layout, alone);
    for (const Axes& along : {Axes{Axis::tp}, Axes{Axis::dp, Axis::cp}, Axes{Axis::pp}}) {
      EXPECT_EQ(quiet.along(along).rank(), real.along(along).rank());
      EXPECT_EQ(quiet.along(along).size(), real.along(along).size());
    }
  });
}

// Which took hours while every rank listed all others.
TEST(QuietWorld, knows_the_circles_of_as_many_ranks_as_anybody_has) {
  const ParallelLayout layout({.tp = 8, .cp = 2, .dp = 256, .pp = 16});
  const Colors colors = colors_of(layout);
  QuietWorld last(layout.world() - 1, colors);
  const ProcessMesh mesh(layout, last);
  EXPECT_EQ(mesh.along(Axis::tp).size(), 8);
  EXPECT_EQ(mesh.along({Axis::dp, Axis::cp}).rank(), 511);
  EXPECT_EQ(mesh.along(Axis::pp).rank(), 15);
}
