// Rules of samples that grow: what says so fits together, and every length that will occur can be cut as the
// layout asks.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/model/kinds.h"
#include "weft/pipe/choose.h"
#include "weft/train/curriculum.h"
#include "weft/train/settings.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

using data::ExcerptForm;
using data::LengthCurve;
using data::LengthRule;

void check_stairs(const LengthRule& rule) {
  if (rule.lengths.empty())
    fail(Kind::usage,
         "{curriculum.schedule=fixed_discrete} needs {curriculum.lengths}: tokens, one length after the "
         "other");
  if (rule.until.size() + 1 != rule.lengths.size())
    fail(Kind::usage, "{curriculum.until} has ", rule.until.size(), " steps, and ", rule.lengths.size(),
         " lengths change ", rule.lengths.size() - 1, " times");
  for (std::size_t i = 0; i < rule.until.size(); ++i)
    if (rule.until[i] <= (i == 0 ? 0 : rule.until[i - 1]))
      fail(Kind::usage, "{curriculum.until}: steps begin at 1 and grow, found ", rule.until[i]);
}

void check_line(const LengthRule& rule) {
  if (rule.least < 1)
    fail(Kind::usage, "{curriculum.schedule} needs {curriculum.least}: the tokens of the first samples");
  if (rule.steps < 1)
    fail(Kind::usage,
         "{curriculum.schedule} needs {curriculum.steps}: after how many steps samples are longest");
  if (rule.least > rule.most)
    fail(Kind::usage, "{curriculum.least} ", rule.least, " is greater than {curriculum.most} ", rule.most);
  const std::int64_t lengths = (rule.most - rule.least) / rule.multiple;
  if (lengths > data::Lengths::most_stairs)
    fail(Kind::usage, "{curriculum.multiple} ", rule.multiple, " makes ", lengths, " lengths, more than ",
         data::Lengths::most_stairs, ": take a larger one");
}

void not_longer(std::int64_t length, std::string_view who, std::int64_t sequence) {
  if (length > sequence)
    fail(Kind::usage, who, " ", length, " is more than the ", sequence, " tokens of a sample");
}

void check_samples(const TrainConfig& c) {
  const Samples samples = kind_of(c.model).samples(c.model);
  if (samples.decoder > 0)
    fail(Kind::usage, "{curriculum.schedule}: samples of a model of the family ", c.model.kind,
         " have two lengths, and Megatron-DeepSpeed's read no curriculum either: leave it out");
  if (!c.batch.schedule.empty())
    fail(Kind::usage,
         "{batch.schedule} counts the tokens of whole samples, and {curriculum.schedule} shortens them: ",
         "take {batch.rampup}");
  if (c.curriculum.form == ExcerptForm::truncate) return;
  if (samples.of != Samples::Of::documents)
    fail(Kind::usage,
         "{curriculum.form=reshape} cuts windows on documents in pieces, and a model of the family ",
         c.model.kind, " reads sentences: take truncate");
}

/// In exact mode each piece of a sample goes through the layers by itself, and a step has more passes.
void check_passes(const TrainConfig& c, const data::Lengths& lengths, std::int64_t steps) {
  if (!c.model.exact || c.curriculum.form == ExcerptForm::truncate) return;
  std::int64_t most = 1;
  for (const data::Lengths::Stair& stair : lengths.stairs())
    if (stair.from <= steps)
      most = std::max(most, data::rows_of({1, c.model.sequence}, {stair.length, ExcerptForm::reshape}).count);
  if (most == 1) return;
  validate::pieces(c, most);
  if (!pipe::knows_schedule(c.parallel.schedule))
    fail(Kind::usage, "{curriculum.form=reshape}: in exact mode pieces of samples are microbatches, and ",
         "{parallel.schedule} ", c.parallel.schedule, " is written for one number of them: take truncate");
}

/// Warm-up and decay are both told in tokens, or neither is: how many tokens a sample is follows from the
/// step.
void check_rates(const RateConfig& r) {
  const bool warmup = r.warmup_iterations > 0 || r.warmup_samples > 0 || r.warmup_fraction;
  if (r.decay_tokens > 0 && warmup)
    fail(Kind::usage,
         "{rate.decay_tokens} counts tokens, of which samples have fewer at first: use {rate.warmup_tokens}");
  if (r.warmup_tokens > 0 && r.decay_tokens == 0)
    fail(Kind::usage,
         "{rate.warmup_tokens} counts tokens, of which samples have fewer at first: use {rate.decay_tokens}");
  if ((r.warmup_tokens > 0 || r.decay_tokens > 0) && (r.anneal_iterations > 0 || r.anneal_samples > 0))
    fail(Kind::usage,
         "{rate.anneal_iterations} and -samples do not count tokens, of which samples have fewer at first");
}

void check_length(const TrainConfig& c, const data::Lengths::Stair& stair) {
  const auto who = [&] {
    return text("{curriculum.schedule}: at step ", std::max<std::int64_t>(stair.from, 1), " ");
  };
  if (c.curriculum.form == ExcerptForm::reshape &&
      (c.model.sequence + 1) / (stair.length + 1) >= data::most_pieces_of_a_sample)
    fail(Kind::usage, who(), "a sample has more than ", data::most_pieces_of_a_sample, " pieces of ",
         stair.length, " tokens");
  ModelConfig model = c.model;
  model.sequence = stair.length;
  try {
    validate::sequence(model, c.parallel);
  } catch (const Error& error) {
    fail(error.kind(), who(), error.what());
  }
}

}  // namespace

void validate::curriculum(TrainConfig& c) {
  LengthRule& rule = c.curriculum.rule;
  if (rule.curve == LengthCurve::none) return;
  check_samples(c);
  check_rates(c.rate);
  const std::int64_t whole = c.model.sequence;
  if (rule.curve == LengthCurve::fixed_discrete) {
    check_stairs(rule);
    not_longer(std::ranges::max(rule.lengths), "{curriculum.lengths}", whole);
  } else {
    if (rule.most == 0) rule.most = whole;
    not_longer(rule.most, "{curriculum.most}", whole);
    check_line(rule);
  }
  const data::Lengths lengths(rule);
  if (lengths.at(1) < 1)
    fail(Kind::usage, "{curriculum.least} ", rule.least, " is below {curriculum.multiple} ", rule.multiple,
         ": the first samples would have no tokens");
  const std::int64_t steps = run_length(c).steps;
  check_passes(c, lengths, steps);
  for (std::size_t i = 0; i < lengths.stairs().size(); ++i) {
    const bool over = i + 1 < lengths.stairs().size() && lengths.stairs()[i + 1].from <= 1;
    if (!over && lengths.stairs()[i].from <= steps) check_length(c, lengths.stairs()[i]);
  }
}

}  // namespace weft
