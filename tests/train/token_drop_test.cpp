// Whole runs in which tokens pass layers by: no layout and no resume sees it, and evaluations see all tokens.
#include "weft/nn/token_drop.h"

#include "tests/support/few_experts.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "tests/train/completing.h"
#include "tests/train/run_cut.h"
#include "tests/train/tiny_run.h"
#include "weft/model/count.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Layers 1 and 2 of four see 2, 3, 4, 5, 6 and 7 of 8 tokens.
TrainConfig dropping() {
  TrainConfig c = tiny_run();
  c.model.layers = 4;
  c.model.positions = Positions::rotary;
  c.model.token_drop = {.layers = {1, 2}, .least = 2, .most = 8, .steps = 6};
  return c;
}

}  // namespace

// In exact mode every bit.
TEST(TokenDropRun, is_the_same_under_every_layout_to_the_bit) {
  const std::vector<RunCut> cuts{
      {.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2, .exact = true},
      {.name = "pp2_zero1", .dp = 2, .pp = 2, .micro = 2, .zero = 1, .exact = true},
      {.name = "pp4", .pp = 4, .micro = 1, .exact = true},
      {.name = "zero3", .dp = 4, .micro = 1, .zero = 3, .exact = true}};
  for (const char* kind : {"gpt", "bert"}) {
    TrainConfig base = dropping();
    base.model.kind = kind;
    if (kind == std::string("bert")) base.model.positions = Positions::learned;
    base.data.index = kind == std::string("gpt") ? IndexKind::keyed : IndexKind::stored;
    const Told one = train(cut_as({.name = "one", .exact = true}, base));
    ASSERT_EQ(one.losses.size(), 6U);
    for (const RunCut& cut : some_of(cuts, 3)) {
      TrainConfig c = base;
      if (cut.pp > 1) c.parallel.schedule = "zb-h1";
      expect_same_bits(train(cut_as(cut, c)), one, text(kind, " ", cut.name));
    }
  }
}

// Two layers of four see 4, 4, 8, 8, 12 and 12 of 16 tokens, which are shared out as whole samples are.
TEST(TokenDropRun, is_the_same_where_ranks_share_sequences) {
  TrainConfig base = dropping();
  base.model.sequence = base.model.max_positions = 16;
  base.model.token_drop = {.layers = {1, 2}, .least = 4, .most = 16, .steps = 6, .multiple = 4};
  base.model.recompute.what = Recompute::full;
  const auto cut = [&](RunCut of, ContextForm form, bool sequence) {
    TrainConfig c = base;
    c.parallel.context = form;
    c.parallel.sequence = sequence;
    return cut_as(of, c);
  };
  const Told exact = train(cut({.name = "one", .exact = true}, ContextForm::ring, false)),
             fast = train(cut({.name = "one", .micro = 2}, ContextForm::ring, false));
  EXPECT_NE(exact.losses[0], exact.losses[1]);
  for (const bool bits : {true, false}) {
    const int micro = bits ? 8 : 2;
    const RunCut tp2{.name = "tp2 cut", .tp = 2, .micro = micro, .exact = bits},
        cp2{.name = "cp2", .micro = micro, .cp = 2, .exact = bits},
        both{.name = "tp2 cut cp2", .tp = 2, .micro = micro, .cp = 2, .exact = bits};
    const std::vector<std::pair<RunCut, ContextForm>> all{{both, ContextForm::ring},
                                                          {tp2, ContextForm::ring},
                                                          {cp2, ContextForm::ring},
                                                          {cp2, ContextForm::gather},
                                                          {cp2, ContextForm::heads}};
    for (const auto& [of, form] : some_of(all, 3)) {
      const Told told = train(cut(of, form, of.tp > 1));
      if (bits)
        expect_same_bits(told, exact, text(of.name, " ", int(form)));
      else
        expect_same_but_for_rounding(told, fast, of);
    }
  }
}

// Segments go with their tokens.
TEST(TokenDropRun, keeps_documents_apart_where_ranks_share_sequences) {
  TrainConfig base = dropping();
  base.model.token_drop = {.layers = {1, 2}, .least = 4, .most = 8, .steps = 20, .multiple = 4};
  base.data.reset_attention = base.data.reset_positions = true;
  TrainConfig one = base, cut = base;
  one.data.reset_attention = one.data.reset_positions = false;
  const Told apart = train(cut_as({.name = "one", .exact = true}, base));
  EXPECT_NE(apart.losses, train(cut_as({.name = "one", .exact = true}, one)).losses);
  expect_same_bits(train(cut_as({.name = "cp2", .cp = 2, .exact = true}, cut)), apart, "cp2");
}

namespace {

/// With experts, whose room, losses and noise are those of the tokens that a layer sees, and with a window.
TrainConfig dropping_among_experts() {
  TrainConfig c = dropping();
  c.model.sequence = c.model.max_positions = 16;
  c.model.token_drop = {.layers = {1, 2}, .least = 4, .most = 16, .steps = 6, .multiple = 4};
  c.model.linear_bias = false;
  c.model.window = 6;
  c.model.experts.count = 4;
  c.model.experts.router = learning_router();
  c.model.experts.router.z_loss = 0.01;
  c.model.experts.router.capacity = 1.0;
  c.model.experts.router.jitter = 0.1;
  return c;
}

}  // namespace

TEST(TokenDropRun, is_the_same_with_experts_and_windows_under_every_layout_to_the_bit) {
  const TrainConfig base = dropping_among_experts();
  const Told one = train(cut_as({.name = "one", .exact = true}, base));
  ASSERT_EQ(one.losses.size(), 6U);
  const std::vector<RunCut> cuts{{.name = "tp2_ep2", .tp = 2, .dp = 2, .micro = 2, .exact = true},
                                 {.name = "pp2_ep2", .dp = 2, .pp = 2, .micro = 2, .zero = 1, .exact = true},
                                 {.name = "cp2_ep2", .dp = 2, .micro = 4, .cp = 2, .exact = true},
                                 {.name = "tp2_cp2", .tp = 2, .micro = 8, .cp = 2, .exact = true}};
  for (const RunCut& cut : some_of(cuts, 2)) {
    TrainConfig c = base;
    c.parallel.sequence = cut.tp > 1;
    c.parallel.ep = cut.dp;
    expect_same_bits(train(cut_as(cut, c)), one, cut.name);
  }
}

TEST(TokenDropRun, is_the_same_with_experts_in_fast_mode_but_for_rounding) {
  TrainConfig base = dropping_among_experts();
  base.model.experts.router.balancing = {Balancing::aux_loss, Balancing::seq_aux_loss};
  base.model.experts.router.expert_bias = false;  // which goes by who had more, and that may be rounding
  const Told one = train(cut_as({.name = "one", .micro = 4}, base));
  for (const RunCut& cut : {RunCut{.name = "tp2_ep2", .tp = 2, .dp = 2, .micro = 4},
                            RunCut{.name = "cp2", .micro = 4, .cp = 2}}) {
    TrainConfig c = base;
    c.parallel.sequence = cut.tp > 1;
    c.parallel.ep = cut.dp;
    expect_same_but_for_rounding(train(cut_as(cut, c)), one, cut);
  }
  expect_it_goes_on_to_the_bit(base);
}

TEST(TokenDropRun, is_the_same_in_fast_mode_but_for_rounding) {
  const RunCut cuts[] = {{.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2},
                         {.name = "pp2", .pp = 2, .micro = 2},
                         {.name = "dp2_zero2", .dp = 2, .micro = 2, .zero = 2}};
  const Told one = train(cut_as({.name = "one", .micro = 2}, dropping()));
  for (const RunCut& cut : cuts) {
    expect_same_but_for_rounding(train(cut_as(cut, dropping())), one, cut);
  }
}

TEST(TokenDropRun, goes_on_from_a_checkpoint_to_the_bit) { expect_it_goes_on_to_the_bit(dropping()); }

// Nothing is learned, so that what is left of a run is its evaluations.
TEST(TokenDropRun, evaluates_on_all_tokens) {
  TrainConfig c = dropping();
  c.rate.peak = 0;
  TrainConfig whole = c;
  whole.model.token_drop = {};
  const Told told = train(completed(c)), usual = train(completed(whole));
  EXPECT_EQ(told.validations, usual.validations);
  EXPECT_NE(told.losses[0], usual.losses[0]);
}

TEST(TokenDropRun, counts_the_work_of_the_tokens_that_layers_see) {
  const TrainConfig c = completed(dropping());
  const auto flops_of = teller_settings(c, kind_of(c.model).losses(c.model)).flops_of;
  const auto layers = [&](int n, std::int64_t length) {
    ModelConfig m = c.model;
    m.layers = n;
    return training_flops(m, length);
  };
  const double part = layers(2, 2) - layers(1, 2);
  EXPECT_DOUBLE_EQ(flops_of(1, 8), 8 * (layers(2, 8) + 2 * part));
  EXPECT_EQ(flops_of(7, 8), 8 * layers(4, 8));
}

TEST(TokenDropRun, refuses_what_does_not_say_how_many_tokens) {
  const auto with = [](const Change& more) {
    return [=](TrainConfig& c) {
      c.model.token_drop = {.layers = {1, 2}, .least = 16, .most = 64, .steps = 10, .multiple = 8};
      more(c);
    };
  };
  refused(with([](TrainConfig& c) {
            c.model.token_drop.layers = {1, 4};
          }),
          "{model.token_drop.layers}: layer 4 of 4: they count from 0");
  refused(with([](TrainConfig& c) {
            c.model.token_drop.layers = {1, 1};
          }),
          "{model.token_drop.layers}: layer 1 stands there twice");
  refused(with([](TrainConfig& c) { c.model.token_drop.steps = 0; }),
          "{model.token_drop.layers} needs {model.token_drop.least}, {model.token_drop.most} and "
          "{model.token_drop.steps}: how many tokens they see");
  refused(with([](TrainConfig& c) { c.model.token_drop.least = 65; }),
          "{model.token_drop.least} 65 is greater than {model.token_drop.most} 64");
  refused(with([](TrainConfig& c) { c.model.token_drop.least = 4; }),
          "{model.token_drop.least} 4 is below {model.token_drop.multiple} 8: the first steps would see no "
          "token");
  EXPECT_NO_THROW((void)completed(with([](TrainConfig&) {})));
}

TEST(TokenDropRun, refuses_models_and_layouts_that_cannot_choose_tokens) {
  const auto with = [](const Change& more) {
    return [=](TrainConfig& c) {
      c.model.token_drop = {.layers = {1}, .least = 16, .most = 64, .steps = 10};
      more(c);
    };
  };
  refused(
      with([](TrainConfig& c) {
        c.model.kind = "t5", c.model.decoder_layers = 2, c.model.decoder_sequence = 16;
      }),
      "{model.token_drop.layers}: a model of the family t5 has two stacks, and biases of whole sequences; "
      "DeepSpeed's layers are those of one encoder or one decoder: leave it out");
  const auto odd = [](const Change& more) {
    return [=](TrainConfig& c) {
      c.model.token_drop = {.layers = {1}, .least = 17, .most = 64, .steps = 10};
      more(c);
    };
  };
  refused(odd([](TrainConfig& c) { c.parallel.cp = 2; }),
          "{model.token_drop.layers}: where layers see 17 tokens, sequence length 17 is not a multiple of 4, "
          "twice "
          "the context-parallel ranks");
  refused(odd([](TrainConfig& c) { c.parallel.tp = 2, c.parallel.sequence = true; }),
          "{model.token_drop.layers}: where layers see 17 tokens, {parallel.sequence}: 17 tokens of a rank "
          "cannot be "
          "shared by 2 tensor-parallel ranks");
}

// 8 samples a step, of 8 tokens; two of four layers see 2, 3, 4, 5, 6, 7 and 8 of them.
TEST(TokenDropRun, counts_a_token_less_the_more_layers_it_passes_by) {
  const TrainConfig c = completed(dropping());
  const Curriculum curriculum = curriculum_of(c);
  const BatchSchedule batches = batch_schedule(c);
  const std::int64_t each[] = {5, 5, 6, 6, 7, 7, 8, 8};  // (8 · 2 + kept · 2) / 4
  std::int64_t tokens = 0;
  for (std::int64_t step = 1; step <= 8; ++step) {
    tokens += 8 * each[step - 1];
    EXPECT_EQ(curriculum.tokens_at(step, 8), 8 * each[step - 1]) << step;
    EXPECT_EQ(curriculum.tokens_after(batches, step), tokens) << step;
    EXPECT_EQ(curriculum.steps_until(batches, tokens), step);
    EXPECT_EQ(curriculum.steps_until(batches, tokens + 1), step + 1);
  }
}

// Both at once: samples of 4, 8 and 12 tokens, of which a layer of three sees 5 at most.
TEST(TokenDropRun, counts_by_the_length_that_samples_have) {
  const CurriculumConfig growing{
      .rule = {.curve = data::LengthCurve::fixed_discrete, .lengths = {4, 8, 12}, .until = {2, 4}}};
  const Curriculum curriculum(growing, 12, 1, {.layers = {1}, .least = 5, .most = 5, .steps = 1}, 3);
  const BatchSchedule batches({.micro = 1, .global = 1}, 1, 12);
  const std::int64_t each[] = {4, 4, 7, 7, 9, 9};  // (4 · 2 + 4) / 3, (8 · 2 + 5) / 3, (12 · 2 + 5) / 3
  std::int64_t tokens = 0;
  for (std::int64_t step = 1; step <= 6; ++step) {
    EXPECT_EQ(curriculum.tokens_at(step, 1), each[step - 1]) << step;
    EXPECT_EQ(curriculum.tokens_after(batches, step), tokens += each[step - 1]) << step;
    EXPECT_EQ(curriculum.steps_until(batches, tokens), step);
  }
}

TEST(TokenDropRun, says_how_many_tokens_layers_see) {
  const Told told = train(completed(dropping()));
  ASSERT_EQ(told.steps.size(), 6U);
  const std::int64_t reserved[] = {2, 3, 4, 5, 6, 7}, actual[] = {5, 5, 6, 6, 7, 7};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(told.steps[i].reserved_length, reserved[i]);
    EXPECT_EQ(told.steps[i].actual_length, actual[i]);
  }
  EXPECT_EQ(train(completed(tiny_run())).steps[0].reserved_length, std::nullopt);
}

TEST(TokenDropRun, ends_and_warms_up_by_the_tokens_that_count) {
  TrainConfig c = dropping();
  c.length = {.tokens = 8 * (5 + 5 + 6 + 6 + 7 + 7)};
  c.rate.warmup_iterations = 0;
  c.rate.warmup_tokens = 80;  // of two steps
  c.rate.decay_tokens = 1'000'000;
  const Told told = train(completed(c));
  ASSERT_EQ(told.steps.size(), 6U);
  EXPECT_EQ(told.steps[1].consumed_tokens, 80);
  EXPECT_EQ(told.steps[5].consumed_tokens, c.length.tokens);
  EXPECT_NEAR(*told.steps[1].learning_rate - *told.steps[0].learning_rate, *c.rate.peak / 2, 1e-9);
  expect_it_goes_on_to_the_bit(c);
}
