// Rules of layers that steps leave out, and of tokens that pass layers by.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/model/kinds.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

/// A layer that is left out hands on what came in.
void layer_drop(const ModelConfig& m) {
  if (!m.layer_drop.on()) return;
  constexpr std::string_view who = "{model.layer_drop.theta}";
  if (kind_of(m).samples(m).decoder > 0)
    fail(Kind::usage, who, ": a model of the family ", m.kind,
         " has two stacks, and no order of depth over both; DeepSpeed leaves out layers of a BERT: leave it "
         "out");
}

constexpr std::string_view tokens = "{model.token_drop.layers}";

void line(const TokenDrop& d, int layers) {
  for (const int layer : d.layers) {
    if (layer >= layers) fail(Kind::usage, tokens, ": layer ", layer, " of ", layers, ": they count from 0");
    if (std::ranges::count(d.layers, layer) > 1)
      fail(Kind::usage, tokens, ": layer ", layer, " stands there twice");
  }
  if (d.steps < 1 || d.most < 1)
    fail(Kind::usage, tokens,
         " needs {model.token_drop.least}, {model.token_drop.most} and {model.token_drop.steps}: how many "
         "tokens "
         "they see");
  if (d.least > d.most)
    fail(Kind::usage, "{model.token_drop.least} ", d.least, " is greater than {model.token_drop.most} ",
         d.most);
  if (d.least < d.multiple)
    fail(Kind::usage, "{model.token_drop.least} ", d.least, " is below {model.token_drop.multiple} ",
         d.multiple, ": the first steps would see no token");
}

void model_of_tokens(const ModelConfig& m) {
  if (kind_of(m).samples(m).decoder > 0)
    fail(Kind::usage, tokens, ": a model of the family ", m.kind,
         " has two stacks, and biases of whole sequences; DeepSpeed's layers are those of one encoder or one "
         "decoder: leave it out");
}

/// Ranks that share a sequence share out the tokens that a layer sees in the same way.
void cut_of_tokens(const ModelConfig& m, const ParallelConfig& p) {
  if (p.cp == 1 && !(p.sequence && p.tp > 1)) return;
  const TokenDrop& d = m.token_drop;
  ModelConfig some = m;
  for (std::int64_t kept = d.least - d.least % d.multiple; kept < m.sequence; kept += d.multiple) {
    some.sequence = std::min(kept, d.most);
    try {
      validate::sequence(some, p);
    } catch (const Error& error) {
      fail(error.kind(), tokens, ": where layers see ", some.sequence, " tokens, ", error.what());
    }
    if (kept >= d.most) return;
  }
}

}  // namespace

void validate::left_out(const TrainConfig& c) {
  layer_drop(c.model);
  if (!c.model.token_drop.on()) return;
  line(c.model.token_drop, c.model.layers);
  model_of_tokens(c.model);
  cut_of_tokens(c.model, c.parallel);
}

}  // namespace weft
