// Rules of whoever looks at the greatest scores of attention.
#include "weft/base/error.h"
#include "weft/model/kinds.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

void one_stack(const ModelConfig& m, std::string_view who) {
  if (kind_of(m).samples(m).decoder > 0)
    fail(Kind::usage, who, ": a model of the family ", m.kind,
         " has two stacks, and greatest scores are kept by the layers of one: leave it out");
}

/// That scores shrink where weights do.
void weights_make_scores(const ModelConfig& m, std::string_view who) {
  if (!m.latent.on && (m.qk_norm || m.qk_norm_whole))
    fail(Kind::usage, who,
         ": queries and keys are normed behind their weights ({model.qk_norm}, {model.qk_norm_whole}), and ",
         "their scores stay however small these become: leave one of them out");
  if (m.qkv_limit > 0)
    fail(Kind::usage, who, ": queries and keys are kept within {model.qkv_limit} ", m.qkv_limit,
         " behind their weights, and do not shrink as these do: leave one of them out");
  if (m.scores.cap > 0)
    fail(Kind::usage, who, ": scores stay below {model.scores.cap} ", m.scores.cap,
         " anyway, and do not shrink as weights do: leave one of them out");
}

}  // namespace

void validate::scores(const TrainConfig& c) {
  if (c.log.greatest_score) one_stack(c.model, "{log.greatest_score}");
  const QkClipConfig& clip = c.optimizer.qk_clip;
  if (!clip.on) return;
  constexpr std::string_view who = "{optimizer.qk_clip.on}";
  one_stack(c.model, who);
  if (!(clip.alpha > 0 && clip.alpha < 1))
    fail(Kind::usage, "{optimizer.qk_clip.alpha} ", clip.alpha,
         " is not between 0 and 1: queries and keys both shrink");
  weights_make_scores(c.model, who);
  if (c.optimizer.kind == OptimizerKind::zerooneadam)
    fail(Kind::usage, who,
         ": ranks that train by {optimizer.kind=zerooneadam} hold other weights between their meetings: "
         "leave one of them out");
}

}  // namespace weft
