// Lengths are stairs, and batches change at samples: between two stairs the batch schedule counts.
#include "weft/train/curriculum.h"

#include <algorithm>
#include <limits>

#include "weft/base/error.h"

namespace weft {
namespace {

data::Lengths lengths_of(const CurriculumConfig& config, std::int64_t sequence) {
  if (config.rule.curve == data::LengthCurve::none) return data::Lengths(sequence);
  return data::Lengths(config.rule);
}

/// The steps from which on layers see more of so many tokens. They see no fewer later, so each is found by
/// halving.
std::vector<std::int64_t> steps_that_keep_more(const TokenDrop& drop, std::int64_t sequence) {
  std::vector<std::int64_t> out;
  constexpr std::int64_t never = std::int64_t(1) << 60;
  const auto kept = [&](std::int64_t step) { return tokens_kept(drop, step, sequence); };
  for (std::int64_t step = 1; drop.on() && kept(step) < kept(never);) {
    std::int64_t same = step, more = never;
    while (more - same > 1) {
      const std::int64_t middle = same + (more - same) / 2;
      (kept(middle) > kept(step) ? more : same) = middle;
    }
    out.push_back(step = more);
  }
  return out;
}

std::vector<std::int64_t> changes_of(const data::Lengths& lengths, const TokenDrop& drop,
                                     std::int64_t sequence) {
  std::vector<std::int64_t> out = steps_that_keep_more(drop, sequence);
  for (const data::Lengths::Stair& stair : lengths.stairs()) out.push_back(stair.from);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

Curriculum::Curriculum(std::int64_t sequence) : Curriculum(CurriculumConfig(), sequence, 1) {}

Curriculum::Curriculum(const CurriculumConfig& config, std::int64_t sequence, std::int64_t micro,
                       const TokenDrop& drop, int layers)
    : sequence_(sequence),
      micro_(micro),
      lengths_(lengths_of(config, sequence)),
      form_(config.form),
      drop_(drop),
      layers_(layers),
      changes_(changes_of(lengths_, drop, sequence)) {}

bool Curriculum::shortens() const {
  return std::ranges::any_of(lengths_.stairs(),
                             [&](const data::Lengths::Stair& stair) { return stair.length < sequence_; });
}

data::Excerpt Curriculum::excerpt_at(std::int64_t step) const {
  const std::int64_t length = lengths_.at(step);
  return {.length = length < sequence_ ? length : 0, .form = form_};
}

data::Rows Curriculum::rows_at(std::int64_t step, std::int64_t samples) const {
  data::Rows rows = data::rows_of({micro_, sequence_}, excerpt_at(step));
  rows.count = samples / micro_ * rows.count;
  return rows;
}

std::int64_t Curriculum::tokens_of_a_row_at(std::int64_t step) const {
  const std::int64_t length = std::min(lengths_.at(step), sequence_);
  if (!drop_.on()) return length;
  const std::int64_t all = layers_, some = std::ssize(drop_.layers);
  return (length * (all - some) + tokens_kept(drop_, step, length) * some) / all;
}

std::optional<std::int64_t> Curriculum::reserved_at(std::int64_t step) const {
  if (!drop_.on()) return std::nullopt;
  return tokens_kept(drop_, step, std::numeric_limits<std::int64_t>::max());
}

std::int64_t Curriculum::tokens_at(std::int64_t step, std::int64_t samples) const {
  return rows_at(step, samples).count * tokens_of_a_row_at(step);
}

void Curriculum::walk(const BatchSchedule& batches, std::int64_t steps,
                      const std::function<void(std::int64_t, std::int64_t)>& stretch) const {
  std::int64_t before = 0, consumed = 0;
  for (std::size_t i = 0; i < changes_.size() && before < steps; ++i) {
    const std::int64_t last = i + 1 < changes_.size() ? std::min(changes_[i + 1] - 1, steps) : steps;
    if (last <= before) continue;
    const std::int64_t after = batches.consumed_after(last);
    stretch(before + 1, after - consumed);
    before = last;
    consumed = after;
  }
}

void Curriculum::each_stretch(const BatchSchedule& batches, std::int64_t steps,
                              const Stretch& stretch) const {
  walk(batches, steps, [&](std::int64_t step, std::int64_t samples) { stretch(rows_at(step, samples)); });
}

std::int64_t Curriculum::tokens_after(const BatchSchedule& batches, std::int64_t steps) const {
  std::int64_t tokens = 0;
  walk(batches, steps, [&](std::int64_t step, std::int64_t samples) { tokens += tokens_at(step, samples); });
  return tokens;
}

std::int64_t Curriculum::steps_until(const BatchSchedule& batches, std::int64_t tokens) const {
  std::int64_t left = tokens, steps = 0, consumed = 0;
  for (std::size_t i = 0; i < changes_.size() && left > 0; ++i) {
    const bool last = i + 1 == changes_.size();
    if (!last && changes_[i + 1] <= 1) continue;  // before the first step
    const std::int64_t each = tokens_at(steps + 1, micro_);
    const std::int64_t wanted = consumed + (left + each - 1) / each * micro_;
    const std::int64_t end = last ? std::numeric_limits<std::int64_t>::max() : changes_[i + 1] - 1;
    const std::int64_t reached = batches.steps_until(wanted);
    if (reached <= end) return reached;
    const std::int64_t after = batches.consumed_after(end);
    left -= tokens_at(steps + 1, after - consumed);
    steps = end;
    consumed = after;
  }
  return steps;
}

std::vector<std::int64_t> Curriculum::changes_until(std::int64_t last) const {
  std::vector<std::int64_t> steps{1};
  for (const std::int64_t change : changes_)
    if (change > 1 && change <= last) steps.push_back(change);
  return steps;
}

std::string Curriculum::told() const {
  if (!shortens()) return {};
  const std::int64_t first = lengths_.at(1);
  const data::Lengths::Stair& last = lengths_.stairs().back();
  const std::string_view how = form_ == data::ExcerptForm::reshape ? "pieces" : "the front of samples";
  if (last.from <= 1) return text("steps read ", how, ", ", first, " tokens");
  return text("steps read ", how, ": ", first, " tokens at first, ", last.length, " from step ", last.from,
              " on");
}

std::int64_t steps_of(const LengthConfig& c, const Curriculum& curriculum, const BatchSchedule& batch) {
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();
  if (c.iterations > 0) steps = c.iterations;
  if (c.samples > 0) steps = std::min(steps, batch.steps_for(c.samples));
  if (c.tokens > 0) steps = std::min(steps, curriculum.steps_until(batch, c.tokens));
  // A run that only evaluates needs no length.
  return steps == std::numeric_limits<std::int64_t>::max() ? 0 : steps;
}

}  // namespace weft
