// Rules of pipeline stages and schedules.
#include "tests/train/completing.h"
#include "weft/train/stages.h"

using namespace weft;
using namespace weft::testing;

TEST(Validate, refuses_stages_that_cannot_be_cut) {
  refused([](TrainConfig& c) { c.parallel.pp = 3; },
          "4 layers cannot be shared evenly by 3 pipeline stages; {parallel.first_stage_layers} and "
          "{parallel.last_stage_layers} cut them unevenly");
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 4;
        c.parallel.count_embedding = true;
      },
      "5 layers, embedding and output counted, cannot be shared evenly by 4 pipeline stages; "
      "{parallel.first_stage_layers} and {parallel.last_stage_layers} cut them unevenly");
  refused([](TrainConfig& c) { c.parallel.pp = 65536; },
          "4 layers, an embedding and an output layer cannot be cut into {parallel.pp} 65536 stages");
  refused([](TrainConfig& c) { c.parallel.virtual_stages = 2; },
          "virtual stages need {parallel.pp} 2 or more, found 1");
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 2;
        c.parallel.virtual_stages = 3;
      },
      "4 layers cannot be shared by 2 ranks of 3 virtual stages");
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 2;
        c.parallel.virtual_stage_layers = 3;
      },
      "4 layers over 2 ranks cannot be cut into stages of 3");
  refused(
      [](TrainConfig& c) {
        c.parallel.layout = "Et*4|L";
        c.parallel.first_stage_layers = 1;
      },
      "stages can be cut in one way only: by {parallel.virtual_stage_layers}, "
      "{parallel.virtual_stages}, {parallel.layout}, or an uneven first and last "
      "stage");
}

TEST(Validate, refuses_schedules_that_do_not_fit) {
  const auto scheduled = [](const std::string& name, int chunks = 0) {
    return [name, chunks](TrainConfig& c) {
      c.parallel.pp = 2;
      c.parallel.schedule = name;
      c.parallel.virtual_stages = chunks;
    };
  };
  refused(scheduled("gpipe", 2),
          "pipeline schedule gpipe has one stage a rank, found 2: interleaved and zb-v take more");
  refused(scheduled("zbv"),
          "pipeline schedule 'zbv' is neither a file nor one of gpipe, 1f1b, interleaved, zb-h1, zb-v, did "
          "you mean zb-v");
  refused([](TrainConfig& c) { c.parallel.schedule = "zb-h1"; },
          "{parallel.schedule} needs {parallel.pp} 2 or more, found 1");
  refused([](TrainConfig& c) { c.parallel.first_stage_layers = 1; },
          "an uneven first or last stage needs {parallel.pp} 2 or more, found 1");
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 2;
        c.parallel.microbatch_group = 4;
      },
      "{parallel.microbatch_group} 4 needs virtual stages: "
      "{parallel.virtual_stages}");
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 2;
        c.parallel.schedule = "zb-v";
        c.parallel.first_stage_layers = 1;
      },
      "pipeline schedule zb-v does not go round the ranks in turn, so no rank's layers are the first or the "
      "last: cut them with {parallel.layout}");
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 2;
        c.parallel.layout = "Et|t|t|tL";
        c.parallel.schedule = "1f1b";
      },
      "pipeline schedule 1f1b has one stage a rank, found 2: interleaved and zb-v take more");
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 2;
        c.parallel.layout = "Ett|ttL";
        c.parallel.count_loss = true;
      },
      "{parallel.layout} says where embedding and output stand: leave "
      "{parallel.count_embedding} and {parallel.count_loss} out");
}

TEST(Validate, refuses_microbatches_that_virtual_stages_cannot_take_in_groups) {
  refused(
      [](TrainConfig& c) {
        c.parallel.pp = 2;
        c.parallel.virtual_stages = 2;
        c.batch.global = 6;
      },
      "interleaved: 3 microbatches in groups of 2 leave a group smaller than 2 ranks");
}

TEST(Validate, counts_virtual_stages_from_a_layout_or_a_schedule) {
  const auto laid = [](TrainConfig& c) {
    c.parallel.pp = 2;
    c.parallel.layout = "Et|t|t|tL";
    c.batch.global = 4;
  };
  EXPECT_EQ(completed(laid).parallel.virtual_stages, 2);
  const auto v = [](TrainConfig& c) {
    c.parallel.pp = 2;
    c.parallel.schedule = "zb-v";
  };
  EXPECT_EQ(completed(v).parallel.virtual_stages, 2);
}

TEST(Validate, counts_virtual_stages_from_their_layers) {
  const auto two = [](TrainConfig& c) {
    c.parallel.pp = 2;
    c.parallel.virtual_stage_layers = 1;
    c.batch.global = 4;
  };
  EXPECT_EQ(completed(two).parallel.virtual_stages, 2);
}

TEST(Stages, say_what_exact_mode_does_with_sequences_that_are_cut) {
  TrainConfig c;
  c.model.heads = c.model.groups = 8;
  c.parallel.cp = 4;
  EXPECT_EQ(exact_context(c.model, c.parallel), "");
  c.model.exact = true;
  EXPECT_EQ(exact_context(c.model, c.parallel),
            "exact mode: context-parallel ranks trade heads, as with {parallel.context=heads}");
  c.parallel.tp = 4;
  EXPECT_EQ(exact_context(c.model, c.parallel),
            "exact mode: 2 key heads of a rank cannot be shared by 4 context-parallel ranks, so each of them "
            "computes attention for all");
  c.parallel.tp = 2;
  c.model.groups = 1;  // with queries enough for eight ranks
  EXPECT_EQ(exact_context(c.model, c.parallel),
            "exact mode: context-parallel ranks trade heads, as with {parallel.context=heads}");
  c.parallel.context = ContextForm::heads;
  EXPECT_EQ(exact_context(c.model, c.parallel), "");
}

TEST(Validate, refuses_groups_of_shares_that_ranks_cannot_form) {
  const auto in_groups = [](int dp, int zero, int groups) {
    return [=](TrainConfig& c) {
      c.parallel.dp = dp;
      c.parallel.zero = zero;
      c.parallel.shard_groups = groups;
    };
  };
  refused(in_groups(4, 0, 2), "{parallel.shard_groups} 2 needs {parallel.zero}: what groups cut up", 4);
  refused(in_groups(4, 1, 3), "4 data-parallel ranks are no {parallel.shard_groups} 3 groups", 4);
  EXPECT_EQ(completed(in_groups(4, 1, 4), 4).parallel.zero, 0);
  EXPECT_EQ(completed(in_groups(4, 1, 2), 4).parallel.shard_groups, 2);
}

TEST(Validate, wants_near_ranks_to_be_equal_parts_of_those_that_cut_weights) {
  const auto near = [](int dp, int zero, int ranks, int groups = 1) {
    return [=](TrainConfig& c) {
      c.parallel.dp = dp;
      c.parallel.zero = zero;
      c.parallel.near_ranks = ranks;
      c.parallel.shard_groups = groups;
    };
  };
  refused(near(4, 2, 2), "{parallel.near_ranks} 2 needs {parallel.zero} 3: cut weights", 4);
  refused(near(4, 3, 3), "{parallel.near_ranks} 3 are no equal parts of the 4 ranks that cut weights up", 4);
  refused(near(4, 3, 4), "{parallel.near_ranks} 4 are no equal parts of the 4 ranks that cut weights up", 4);
  refused(near(4, 3, 2, 2), "{parallel.near_ranks} 2 are no equal parts of the 2 ranks that cut weights up",
          4);
  EXPECT_EQ(completed(near(4, 3, 2), 4).parallel.near_ranks, 2);
  EXPECT_EQ(completed(near(4, 1, 1), 4).parallel.near_ranks, 0);
}

TEST(Validate, wants_what_travels_in_small_integers_to_be_cut) {
  const auto wire = [](int zero, const WireConfig& small, bool exact = false) {
    return [=](TrainConfig& c) {
      c.parallel.dp = 4;
      c.parallel.zero = zero;
      c.parallel.wire = small;
      c.model.exact = exact;
    };
  };
  refused(wire(2, {.weights = true}), "{parallel.wire.weights} needs {parallel.zero} 3: cut weights", 4);
  refused(wire(1, {.gradients = true}),
          "{parallel.wire.gradients} needs {parallel.zero} 2 or 3: cut gradients", 4);
  refused(wire(3, {.weights = true}, true),
          "{parallel.wire.weights} rounds in blocks that depend on the layout, and {model.exact} keeps all "
          "layouts alike: leave one of them out",
          4);
  refused(wire(3, {.gradients = true}, true),
          "{parallel.wire.gradients} rounds in blocks that depend on the layout, and {model.exact} keeps all "
          "layouts alike: leave one of them out",
          4);
  refused(wire(3, {.weight_block = 3}), "{parallel.wire.weight_block} 3 is no even number from 2 to 65536",
          4);
  refused(wire(3, {.gradient_block = 65538}),
          "{parallel.wire.gradient_block} 65538 is no even number from 2 to 65536", 4);
}

TEST(Validate, says_that_numbers_travel_in_small_integers) {
  TrainConfig c = good();
  c.parallel.dp = 4;
  c.parallel.zero = 3;
  c.parallel.near_ranks = 2;
  c.parallel.wire = {.weights = true, .gradients = true};
  EXPECT_THAT(complete(c, 4),
              ::testing::IsSupersetOf(
                  {"{parallel.wire.weights}: matrices travel as int8 with a scale for each 2048 of "
                   "them, and layers read what that leaves; masters, and checkpoints, are not rounded",
                   "{parallel.wire.gradients}: gradients of matrices travel as int4 with a scale for "
                   "each 256 of them, twice: to near ranks and, added, to the others, and are added "
                   "in f32"}));
}

TEST(Validate, refuses_to_share_out_what_is_no_multiple) {
  refused(
      [](TrainConfig& c) {
        c.model.hidden = 18;
        c.model.channels = 4;
        c.model.recompute = {.what = Recompute::full, .cut = true};
        c.parallel.tp = c.run.ranks = 4;
      },
      "{model.recompute.cut} shares {model.hidden} 18 out among {parallel.tp} 4 ranks, and it is no multiple "
      "of that: leave it out");
}
