// Samples that grow: how many tokens a run reads, what is refused, and that no layout sees them grow.
#include "weft/train/curriculum.h"

#include <fstream>

#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "tests/train/completing.h"
#include "tests/train/run_cut.h"
#include "tests/train/tiny_run.h"
#include "weft/tensor/host.h"
#include "weft/train/feed.h"
#include "weft/train/stages.h"

using namespace weft;
using namespace weft::testing;
using data::ExcerptForm;
using data::LengthCurve;
using ::testing::HasSubstr;

namespace {

/// 4 tokens in step 1, then 8, 12, and 16 from step 4 on.
CurriculumConfig four_lengths(ExcerptForm form = ExcerptForm::truncate) {
  return {.rule = {.curve = LengthCurve::fixed_linear, .least = 4, .most = 16, .steps = 4, .multiple = 4},
          .form = form};
}

/// Six steps on samples of 16 tokens.
TrainConfig growing(ExcerptForm form = ExcerptForm::truncate) {
  TrainConfig c = tiny_run();
  c.model.sequence = c.model.max_positions = 16;
  c.curriculum = four_lengths(form);
  return c;
}

std::int64_t tokens_step_by_step(const Curriculum& curriculum, const BatchSchedule& batches,
                                 std::int64_t steps) {
  std::int64_t consumed = 0, tokens = 0;
  for (std::int64_t step = 1; step <= steps; ++step) {
    tokens += curriculum.tokens_at(step, batches.at(consumed));
    consumed += batches.at(consumed);
  }
  return tokens;
}

Change with(CurriculumConfig curriculum, Change more = {}) {
  return [=](TrainConfig& c) {
    c.curriculum = curriculum;
    if (more) more(c);
  };
}

CurriculumConfig line(std::int64_t least, std::int64_t most, std::int64_t multiple = 8) {
  return {.rule = {.curve = LengthCurve::fixed_linear,
                   .least = least,
                   .most = most,
                   .steps = 50,
                   .multiple = multiple}};
}
CurriculumConfig stairs(std::vector<std::int64_t> lengths, std::vector<std::int64_t> until) {
  return {.rule = {.curve = LengthCurve::fixed_discrete,
                   .lengths = std::move(lengths),
                   .until = std::move(until)}};
}

}  // namespace

TEST(Curriculum, counts_the_tokens_that_steps_read) {
  const BatchSchedule batches({.micro = 2, .global = 8}, 1, 16),
      growing({.micro = 2, .global = 8, .rampup = {4, 2, 20}}, 1, 16);
  for (const ExcerptForm form : {ExcerptForm::truncate, ExcerptForm::reshape})
    for (const BatchSchedule* batch : {&batches, &growing}) {
      const Curriculum curriculum(four_lengths(form), 16, 2);
      for (std::int64_t steps = 0; steps <= 9; ++steps)
        EXPECT_EQ(curriculum.tokens_after(*batch, steps), tokens_step_by_step(curriculum, *batch, steps))
            << steps;
    }
  const Curriculum front(four_lengths(), 16, 2);
  EXPECT_EQ(front.tokens_after(batches, 5), 8 * (4 + 8 + 12 + 16 + 16));
}

// Pieces of 4 out of two rows of 17: 6 whole ones, 8 with the last ones, of which 7 would do and 6 are even.
TEST(Curriculum, counts_the_tokens_of_pieces) {
  const Curriculum pieces(four_lengths(ExcerptForm::reshape), 16, 2);
  EXPECT_EQ(pieces.rows_at(1, 8).count, 4 * 6);
  EXPECT_EQ(pieces.tokens_at(1, 8), 4 * 6 * 4);
  EXPECT_EQ(pieces.tokens_at(4, 8), 8 * 16);
  EXPECT_EQ(Curriculum(four_lengths(ExcerptForm::reshape), 16, 1).rows_at(3, 1).tokens(),
            24);  // two of twelve
  EXPECT_EQ(pieces.changes_until(3), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(pieces.changes_until(9), (std::vector<std::int64_t>{1, 2, 3, 4}));
}

TEST(Curriculum, knows_the_first_step_after_which_so_many_tokens_are_read) {
  const BatchSchedule batches({.micro = 2, .global = 8, .rampup = {4, 2, 20}}, 1, 16);
  for (const ExcerptForm form : {ExcerptForm::truncate, ExcerptForm::reshape}) {
    const Curriculum curriculum(four_lengths(form), 16, 2);
    for (std::int64_t tokens = 1; tokens <= 700; tokens += 3) {
      const std::int64_t steps = curriculum.steps_until(batches, tokens);
      EXPECT_GE(curriculum.tokens_after(batches, steps), tokens);
      EXPECT_LT(curriculum.tokens_after(batches, steps - 1), tokens);
    }
  }
}

TEST(Curriculum, says_how_samples_grow) {
  EXPECT_EQ(Curriculum(four_lengths(), 16, 2).told(),
            "steps read the front of samples: 4 tokens at first, 16 from step 4 on");
  EXPECT_EQ(Curriculum(stairs({4}, {}), 16, 2).told(), "steps read the front of samples, 4 tokens");
  EXPECT_EQ(Curriculum(16).told(), "");
}

TEST(Curriculum, ends_a_run_by_the_tokens_it_read_and_not_by_those_of_whole_samples) {
  TrainConfig c = growing();
  c.length = {.tokens = 8 * (4 + 8 + 12) + 1};
  EXPECT_EQ(train(completed(c)).losses.size(), 4U);
}

TEST(Curriculum, lets_rates_go_by_the_tokens_that_were_read) {
  TrainConfig c = growing();
  c.rate.warmup_iterations = 0;
  c.rate.warmup_tokens = 8 * (4 + 8);
  c.rate.decay_tokens = 1000;
  const RatePlan rate = run_schedules(completed(c), 6).rate;
  EXPECT_DOUBLE_EQ(rate.at(Learned{16, 8 * (4 + 8)}), 5e-3);
  EXPECT_DOUBLE_EQ(rate.at(Learned{8, 8 * 4}), 5e-3 / 3);
}

TEST(Curriculum, tells_how_long_samples_are_and_what_rates_make_of_it) {
  TrainConfig c = growing();
  c.rate.style = RateStyle::constant;
  c.rate.warmup_iterations = 0;
  c.rate.warmup_tokens = 8 * (4 + 8 + 12);
  c.rate.decay_tokens = 1000;
  std::vector<std::int64_t> lengths, tokens;
  std::vector<double> rates;
  for (const report::StepRecord& step : train(completed(c)).steps) {
    lengths.push_back(step.sequence_length.value());
    tokens.push_back(step.consumed_tokens.value());
    rates.push_back(step.learning_rate.value());
  }
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{4, 8, 12, 16, 16, 16}));
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{32, 96, 192, 320, 448, 576}));
  EXPECT_EQ(rates, (std::vector<double>{5e-3 * 32 / 192, 5e-3 * 96 / 192, 5e-3, 5e-3, 5e-3, 5e-3}));
  EXPECT_FALSE(train(tiny_run_without_evaluation()).steps[0].sequence_length.has_value());
}

TEST(Curriculum, gives_a_step_the_front_of_its_samples) {
  TrainConfig c = completed(growing());
  const RunData run = open_run_data(c);
  const auto set = run.sets[data::Split::train];
  const auto device = open_device("cpu", {.threads = 1});
  const auto kind = kind_of(c.model);
  const auto feed = [&] {
    return std::make_unique<Feed>(set, run_sampler(c.data, set->size()), Feed::Intake{*device, kind.fields},
                                  0);
  };
  const auto whole = feed(), front = feed();
  const data::SampleTurn turn{.global_batch = 8, .micro_batch = 2};
  const std::vector<double> all = numbers(whole->next(turn)[1].text.tokens);
  const Batch& batch = front->next(turn, {.length = 4})[1];
  EXPECT_EQ(batch.text.tokens.shape(), Shape({4, 2}));
  EXPECT_EQ(numbers(batch.text.tokens), std::vector<double>(all.begin(), all.begin() + 8));
  EXPECT_EQ(batch.counted, 8);
}

// Nothing is learned, so that what is left of a run is its evaluations.
TEST(Curriculum, evaluates_on_whole_samples) {
  for (const char* kind : {"gpt", "bert"}) {
    TrainConfig c = growing();
    c.model.kind = kind;
    c.data.index = kind == std::string("gpt") ? IndexKind::keyed : IndexKind::stored;
    c.rate.peak = 0;
    TrainConfig whole = c;
    whole.curriculum = {};
    const Told shorter = train(completed(c)), usual = train(completed(whole));
    ASSERT_EQ(shorter.losses.size(), 6U);
    EXPECT_EQ(shorter.validations, usual.validations) << kind;
    EXPECT_NE(shorter.losses[0], usual.losses[0]) << kind;
    EXPECT_EQ(shorter.losses[4], usual.losses[4]) << kind;
  }
}

// In exact mode every bit: shapes that change from step to step go through pipelines, rings and cut sequences
// alike, and through experts that other ranks hold.
TEST(Curriculum, is_the_same_under_every_layout_to_the_bit) {
  const std::vector<RunCut> cuts{{.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2, .exact = true},
                                 {.name = "one", .exact = true},
                                 {.name = "pp2", .pp = 2, .micro = 2, .exact = true},
                                 {.name = "cp2_zero2", .micro = 4, .zero = 2, .cp = 2, .exact = true}};
  for (const int experts : {0, 4}) {
    TrainConfig base = growing();
    base.model.linear_bias = experts == 0;
    base.model.experts.count = experts;
    const Told one = train(cut_as(cuts[1], base));
    ASSERT_EQ(one.losses.size(), 6U);
    for (const RunCut& cut : some_of(cuts, 2)) {
      if (experts > 0 && cut.dp == 1) continue;  // one layout for each is enough
      TrainConfig c = base;
      c.parallel.sequence = cut.tp > 1;
      c.parallel.ep = experts > 0 ? cut.dp : 1;
      const Told told = train(cut_as(cut, c));
      EXPECT_EQ(told.losses, one.losses) << cut.name << " with experts: " << experts;
      EXPECT_EQ(told.norms, one.norms) << cut.name << " with experts: " << experts;
    }
  }
}

TEST(Curriculum, in_pieces_is_the_same_under_every_layout_but_for_rounding) {
  const std::vector<RunCut> cuts{{.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2},
                                 {.name = "one", .micro = 2},
                                 {.name = "pp2", .pp = 2, .micro = 2},
                                 {.name = "cp2", .micro = 2, .cp = 2}};
  const TrainConfig base = growing(ExcerptForm::reshape);
  const Told one = train(cut_as(cuts[1], base));
  for (const RunCut& cut : some_of(cuts, 2)) {
    TrainConfig c = base;
    c.parallel.sequence = cut.tp > 1;
    expect_same_but_for_rounding(train(cut_as(cut, c)), one, cut);
  }
}

// In exact mode every piece is a pass, and a leaf of the tree over the step: of a sample of 17 tokens four of
// 4, two of 8, two of 12. So a micro batch of several samples is many of one.
TEST(Curriculum, in_pieces_is_the_same_under_every_layout_to_the_bit_in_exact_mode) {
  const TrainConfig base = growing(ExcerptForm::reshape);
  const Told one = train(cut_as({.name = "one", .micro = 1, .exact = true}, base));
  ASSERT_EQ(one.losses.size(), 6U);
  const std::vector<RunCut> cuts{{.name = "one of two", .micro = 2, .exact = true},
                                 {.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2, .exact = true},
                                 {.name = "pp2_dp2", .dp = 2, .pp = 2, .micro = 4, .exact = true},
                                 {.name = "zero3", .dp = 4, .micro = 1, .zero = 3, .exact = true},
                                 {.name = "cp2_zero2", .micro = 4, .zero = 2, .cp = 2, .exact = true}};
  for (const RunCut& cut : some_of(cuts, 2)) {
    TrainConfig c = base;
    c.parallel.sequence = cut.tp > 1;
    expect_same_bits(train(cut_as(cut, c)), one, cut.name);
  }
  const Told fast = train(cut_as({.name = "fast", .micro = 1}, base));
  expect_same_but_for_rounding(one, fast, {.name = "fast"});
}

TEST(Curriculum, in_pieces_goes_on_to_the_bit) {
  for (const bool exact : {false, true}) {
    TrainConfig c = growing(ExcerptForm::reshape);
    c.model.exact = exact;
    if (exact) c.model.vocabulary_unit = 8;
    c.curriculum.rule.steps = 8;  // still growing in the middle
    c.curriculum.rule.multiple = 1;
    expect_it_goes_on_to_the_bit(c);
  }
}

TEST(Curriculum, in_pieces_is_the_same_with_experts_of_other_ranks_in_exact_mode) {
  TrainConfig base = growing(ExcerptForm::reshape);
  base.model.linear_bias = false;
  base.model.experts.count = 4;
  base.model.experts.router.coefficients = {0.01};
  const Told one = train(cut_as({.name = "one", .exact = true}, base));
  base.parallel.ep = 2;
  expect_same_bits(train(cut_as({.name = "ep2", .dp = 2, .micro = 2, .exact = true}, base)), one, "ep2");
}

TEST(Curriculum, says_what_pieces_are_in_exact_mode) {
  TrainConfig c = completed(growing(ExcerptForm::reshape));
  EXPECT_EQ(exact_pieces(c.model, c.batch, c.curriculum), "");
  c.model.exact = true;
  c.batch.micro = 4;
  EXPECT_EQ(exact_pieces(c.model, c.batch, c.curriculum),
            "exact mode: pieces are those of each sample by itself, as with {batch.micro} 1, whatever "
            "{batch.micro} 4 puts together");
  c.batch.micro = 1;
  EXPECT_EQ(exact_pieces(c.model, c.batch, c.curriculum), "");
}

TEST(Curriculum, refuses_what_does_not_say_how_samples_grow) {
  refused(with(line(0, 64)),
          "{curriculum.schedule} needs {curriculum.least}: the tokens of the first samples");
  refused(with(line(8, 64), [](TrainConfig& c) { c.curriculum.rule.steps = 0; }),
          "{curriculum.schedule} needs {curriculum.steps}: after how many steps samples are longest");
  refused(with(line(32, 16)), "{curriculum.least} 32 is greater than {curriculum.most} 16");
  refused(with(line(8, 128)), "{curriculum.most} 128 is more than the 64 tokens of a sample");
  refused(with(line(4, 64, 16), [](TrainConfig& c) { c.length = {.tokens = 1000}; }),
          "{curriculum.least} 4 is below {curriculum.multiple} 16: the first samples would have no tokens");
  refused(with(line(1, 100'000, 1), [](TrainConfig& c) { c.model.sequence = 200'000; }),
          "{curriculum.multiple} 1 makes 99999 lengths, more than 65536: take a larger one");
  refused(
      with(stairs({}, {})),
      "{curriculum.schedule=fixed_discrete} needs {curriculum.lengths}: tokens, one length after the other");
  refused(with(stairs({8, 16}, {})), "{curriculum.until} has 0 steps, and 2 lengths change 1 times");
  refused(with(stairs({8, 16, 32}, {5, 5})), "{curriculum.until}: steps begin at 1 and grow, found 5");
  refused(with(stairs({8, 65}, {5})), "{curriculum.lengths} 65 is more than the 64 tokens of a sample");
}

TEST(Curriculum, refuses_samples_that_it_cannot_shorten) {
  refused(with(line(8, 64), [](TrainConfig& c) { c.batch.schedule = "0:2 1000:4"; }),
          "{batch.schedule} counts the tokens of whole samples, and {curriculum.schedule} shortens them: "
          "take {batch.rampup}");
  CurriculumConfig pieces = line(8, 64);
  pieces.form = ExcerptForm::reshape;
  const auto exact = [](TrainConfig& c) { c.model.exact = true, c.model.vocabulary_unit = 8; };
  const support::TemporaryDirectory folder;
  const std::string script = (folder.path() / "alone").string();
  std::ofstream(script) << "stages 0 1\nrank 0: F0 B0\nrank 1: F0 B0\n";
  refused(with(pieces,
               [&](TrainConfig& c) {
                 exact(c);
                 c.batch.micro = c.batch.global = 1;
                 c.parallel.pp = 2;
                 c.parallel.schedule = script;
               }),
          text("{curriculum.form=reshape}: in exact mode pieces of samples are microbatches, and "
               "{parallel.schedule} ",
               script, " is written for one number of them: take truncate"),
          2);
  refused(with(pieces,
               [&](TrainConfig& c) {
                 exact(c);
                 c.batch.micro = 1;
                 c.batch.global = 500'000;
               }),
          "{batch.global} 500000 in pieces, 8 each, is 4000000 sequences a rank, more than 1000000: take a "
          "smaller batch or more data-parallel ranks");
  refused(with(pieces, [](TrainConfig& c) { c.model.kind = "bert"; }),
          "{curriculum.form=reshape} cuts windows on documents in pieces, and a model of the family bert "
          "reads sentences: take truncate");
  refused(with(line(8, 64),
               [](TrainConfig& c) {
                 c.model.kind = "t5", c.model.decoder_layers = 2, c.model.decoder_sequence = 16;
               }),
          "{curriculum.schedule}: samples of a model of the family t5 have two lengths, and "
          "Megatron-DeepSpeed's read no curriculum either: leave it out");
  CurriculumConfig tiny = stairs({1, 32'766}, {5});
  tiny.form = ExcerptForm::reshape;
  refused(with(tiny, [](TrainConfig& c) { c.model.sequence = 32'767; }),
          "{curriculum.schedule}: at step 1 a sample has more than 8191 pieces of 1 tokens");
}

TEST(Curriculum, refuses_rates_that_count_tokens_in_part) {
  const auto rates = [](std::int64_t RateConfig::*a, std::int64_t RateConfig::*b) {
    return with(line(8, 64), [=](TrainConfig& c) {
      c.rate.*a = 10'000;
      c.rate.*b = 10;
    });
  };
  refused(
      rates(&RateConfig::decay_tokens, &RateConfig::warmup_iterations),
      "{rate.decay_tokens} counts tokens, of which samples have fewer at first: use {rate.warmup_tokens}");
  refused(
      rates(&RateConfig::warmup_tokens, &RateConfig::decay_iterations),
      "{rate.warmup_tokens} counts tokens, of which samples have fewer at first: use {rate.decay_tokens}");
  refused(rates(&RateConfig::decay_tokens, &RateConfig::anneal_iterations),
          "{rate.anneal_iterations} and -samples do not count tokens, of which samples have fewer at first");
}

TEST(Curriculum, refuses_at_start_a_length_that_the_layout_cannot_share_and_that_will_occur) {
  const auto two = [](TrainConfig& c) { c.parallel.cp = 2; };
  refused(with(stairs({8, 18, 64}, {5, 7}), two),
          "{curriculum.schedule}: at step 6 sequence length 18 is not a multiple of 4, twice the "
          "context-parallel ranks");
  refused(with(stairs({8, 17, 64}, {5, 7}),
               [](TrainConfig& c) {
                 c.parallel.tp = 2;
                 c.parallel.sequence = true;
               }),
          "{curriculum.schedule}: at step 6 {parallel.sequence}: 17 tokens of a rank cannot be shared by 2 "
          "tensor-parallel ranks");
  EXPECT_NO_THROW((void)completed(with(stairs({8, 18, 64}, {5, 7}), [&](TrainConfig& c) {
    two(c);
    c.length.iterations = 5;
    c.rate.warmup_iterations = 0;
  })));
}
