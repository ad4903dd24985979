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

}  // namespace

Curriculum::Curriculum(std::int64_t sequence) : sequence_(sequence), lengths_(sequence) {}

Curriculum::Curriculum(const CurriculumConfig& config, std::int64_t sequence, std::int64_t micro)
    : sequence_(sequence), micro_(micro), lengths_(lengths_of(config, sequence)), form_(config.form) {}

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

void Curriculum::each_stretch(const BatchSchedule& batches, std::int64_t steps,
                              const Stretch& stretch) const {
  const auto stairs = lengths_.stairs();
  std::int64_t before = 0, consumed = 0;
  for (std::size_t i = 0; i < stairs.size() && before < steps; ++i) {
    const std::int64_t last = i + 1 < stairs.size() ? std::min(stairs[i + 1].from - 1, steps) : steps;
    if (last <= before) continue;
    const std::int64_t after = batches.consumed_after(last);
    stretch(rows_at(before + 1, after - consumed));
    before = last;
    consumed = after;
  }
}

std::int64_t Curriculum::tokens_after(const BatchSchedule& batches, std::int64_t steps) const {
  std::int64_t tokens = 0;
  each_stretch(batches, steps, [&](const data::Rows& rows) { tokens += rows.tokens(); });
  return tokens;
}

std::int64_t Curriculum::steps_until(const BatchSchedule& batches, std::int64_t tokens) const {
  const auto stairs = lengths_.stairs();
  std::int64_t left = tokens, steps = 0, consumed = 0;
  for (std::size_t i = 0; i < stairs.size() && left > 0; ++i) {
    const bool last = i + 1 == stairs.size();
    if (!last && stairs[i + 1].from <= 1) continue;  // before the first step
    const std::int64_t each = tokens_at(steps + 1, micro_);
    const std::int64_t wanted = consumed + (left + each - 1) / each * micro_;
    const std::int64_t end = last ? std::numeric_limits<std::int64_t>::max() : stairs[i + 1].from - 1;
    const std::int64_t reached = batches.steps_until(wanted);
    if (reached <= end) return reached;
    const std::int64_t after = batches.consumed_after(end);
    left -= tokens_at(steps + 1, after - consumed);
    steps = end;
    consumed = after;
  }
  return steps;
}

data::Rows Curriculum::most_rows(std::int64_t steps) const {
  data::Rows most = rows_at(std::max<std::int64_t>(steps, 1), micro_);
  for (const data::Lengths::Stair& stair : lengths_.stairs()) {
    if (stair.from > steps) break;
    const data::Rows rows = rows_at(stair.from, micro_);
    if (rows.tokens() > most.tokens()) most = rows;
  }
  return most;
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

Curriculum curriculum_of(const TrainConfig& config) {
  return {config.curriculum, config.model.sequence, std::max<std::int64_t>(config.batch.micro, 1)};
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
