#include "weft/plan/moments.h"

#include <algorithm>

#include "weft/train/curriculum.h"
#include "weft/train/ranks.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

class Moments {
 public:
  explicit Moments(const TrainConfig& c)
      : config_(c),
        curriculum_(curriculum_of(c)),
        last_(std::max<std::int64_t>(run_length(c).steps, 1)),
        rows_(rows_of_a_pass(c.model, c.batch)),
        passes_(c.batch.global / sample_ranks(c.parallel) / rows_),
        drop_(with_all_layers(c.model).layer_drop) {}

  std::vector<Moment> all() const {
    std::vector<Moment> out{whole()};
    Moment tokens = out.front(), passes = out.front();
    for (const std::int64_t step : curriculum_.changes_until(last_)) {
      const Moment here = at(step);
      if (here.rows.tokens() > tokens.rows.tokens()) tokens = here;
      if (here.passes > passes.passes) passes = here;
    }
    for (const Moment& more : {tokens, passes, gathers()})
      if (more.rows.count > 0 && std::ranges::find(out, more) == out.end()) out.push_back(more);
    return out;
  }

 private:
  /// Layers see as many of its tokens as at last.
  Moment whole() const {
    const std::int64_t step = config_.model.token_drop.on() ? last_ : 1;
    return {with_weights(step), {rows_, config_.model.sequence}, int(passes_)};
  }
  /// In exact mode each piece of a sample is a pass.
  Moment at(std::int64_t step) const {
    const data::Rows rows = curriculum_.rows_at(step, rows_);
    const bool apart = sums_of(config_.model).tree_of_sequences();
    return {
        with_weights(step), {apart ? 1 : rows.count, rows.length}, int(passes_ * (apart ? rows.count : 1))};
  }
  Moment gathers() const {
    const TokenDrop& drop = config_.model.token_drop;
    Moment most{.rows = {0, 0}};
    std::int64_t seen = 0;
    if (!drop.on()) return most;
    for (const std::int64_t step : curriculum_.changes_until(last_)) {
      const Moment here = at(step);
      const std::int64_t kept = tokens_kept(drop, step, here.rows.length);
      if (kept == here.rows.length || here.rows.length + kept <= seen) continue;
      seen = here.rows.length + kept;
      most = here;
    }
    return most;
  }
  /// The first two steps go through layers unweighed; behind them one that leaves none out.
  std::int64_t with_weights(std::int64_t step) const {
    if (!drop_.on()) return step;
    const int layers = config_.model.layers;
    step = std::max<std::int64_t>(step, 3);
    while (layers_kept(drop_, std::uint64_t(config_.run.seed), step, layers) < layers) ++step;
    return step;
  }

  const TrainConfig& config_;
  Curriculum curriculum_;
  std::int64_t last_, rows_, passes_;
  LayerDrop drop_;
};

}  // namespace

std::vector<Moment> moments_of(const TrainConfig& config) { return Moments(config).all(); }

ModelConfig with_all_layers(ModelConfig model) {
  if (model.layer_drop.on()) model.layer_drop = {.theta = 1 - 1e-4, .gamma = 100};
  return model;
}

}  // namespace weft
