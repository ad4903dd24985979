// What each step of a run reads of its samples, and what that makes of a run's length in tokens: pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/data/excerpt.h"
#include "weft/data/lengths.h"
#include "weft/nn/token_drop.h"
#include "weft/train/batch_size.h"

namespace weft {

class Curriculum {
 public:
  /// Whole samples of so many tokens, always.
  explicit Curriculum(std::int64_t sequence);
  /// Of a rule that was looked at, for samples of so many tokens, so many of which are a microbatch; and of
  /// tokens that pass some of so many layers by.
  Curriculum(const CurriculumConfig& config, std::int64_t sequence, std::int64_t micro,
             const TokenDrop& drop = {}, int layers = 0);

  bool shortens() const;
  /// A step's tokens count less than those of its samples' length.
  bool counts_less() const { return drop_.on() || shortens(); }
  std::int64_t length_at(std::int64_t step) const { return lengths_.at(step); }
  /// Of a row: what of it counts as read.
  std::int64_t tokens_of_a_row_at(std::int64_t step) const;
  /// What layers that tokens pass by see of a long row; none where there are no such layers.
  std::optional<std::int64_t> reserved_at(std::int64_t step) const;
  data::Excerpt excerpt_at(std::int64_t step) const;
  /// What so many samples, whole microbatches, become at a step.
  data::Rows rows_at(std::int64_t step, std::int64_t samples) const;
  /// Of such rows, as Megatron-DeepSpeed counts: what k of L layers see of a row counts k/L, rounded down.
  std::int64_t tokens_at(std::int64_t step, std::int64_t samples) const;

  /// Of all stretches of steps that are alike, up to a last step, the first steps.
  std::vector<std::int64_t> changes_until(std::int64_t last) const;
  /// Calls for the steps up to the last one, as many at a time as are of one length, with what their samples
  /// become.
  using Stretch = std::function<void(const data::Rows& rows)>;
  void each_stretch(const BatchSchedule& batches, std::int64_t steps, const Stretch& stretch) const;
  std::int64_t tokens_after(const BatchSchedule& batches, std::int64_t steps) const;
  /// The steps after which at least so many tokens are read.
  std::int64_t steps_until(const BatchSchedule& batches, std::int64_t tokens) const;

  /// "steps read the front of samples: 64 tokens at first, 1024 from step 80 on"; empty where they are whole
  /// always.
  std::string told() const;

 private:
  /// Of every stretch its first step and its samples.
  void walk(const BatchSchedule& batches, std::int64_t steps,
            const std::function<void(std::int64_t step, std::int64_t samples)>& stretch) const;

  std::int64_t sequence_, micro_ = 1;
  data::Lengths lengths_;
  data::ExcerptForm form_ = data::ExcerptForm::truncate;
  TokenDrop drop_;
  int layers_ = 1;
  std::vector<std::int64_t> changes_;  // steps from which on a sample counts another number of tokens
};

/// The steps of the whole run, whichever way its length was given; none where it was not.
std::int64_t steps_of(const LengthConfig&, const Curriculum&, const BatchSchedule&);

}  // namespace weft
