// Depths stand in one layer, because each begins where the one before it ends.
#include "weft/nn/further_tokens.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

Tensor side_of(const Tensor& joined, int which) {
  const std::int64_t h = joined.dim(2) / 2;
  return joined.slice(2, which * h, h);
}

Tensor copied(const Tensor& x) {
  const Tensor out = empty_like(x);
  ops::copy_into(out, x);
  return out;
}

/// Words and positions that a depth joins. Attention goes by the places of the hidden states.
Sequences read_at(const Sequences& text, const Further& ahead) {
  Sequences read = text;
  read.tokens = ahead.tokens;
  read.positions = ahead.positions;
  return read;
}

}  // namespace

FurtherTokens::FurtherTokens(std::vector<Depth> depths, std::unique_ptr<Embedding> words, LanguageHead& head,
                             const Options& options)
    : depths_(std::move(depths)), words_(std::move(words)), head_(head), options_(options) {
  const int rounds = exact(options_.depths, int(depths_.size()));
  each_of_depths([rounds](Parameter& p) { p.uses *= rounds; });
}

Tensor FurtherTokens::join(Pass& pass, Depth& depth, Saved& saved) const {
  const Tensor& x = saved.hidden;
  saved.joined = empty(x.device(), {x.dim(0), x.dim(1), 2 * x.dim(2)}, x.dtype());
  saved.word_stats = depth.word_norm.forward_into(side_of(saved.joined, 0), saved.words);
  saved.hidden_stats = depth.hidden_norm.forward_into(side_of(saved.joined, 1), x);
  return depth.block->forward(pass, {depth.join.forward(saved.joined), {}, {}}).hidden;
}

Flow FurtherTokens::forward(Pass& pass, const Flow& in) {
  if (pass.place().logits_count > 0) return in;
  const Batch& batch = pass.batch();
  if (batch.further.size() < std::size_t(options_.depths))
    fail(Kind::internal, "further tokens: ", options_.depths, " depths, and the batch looks ",
         batch.further.size(), " places on");
  Tensor hidden = in.hidden;
  for (int k = 1; k <= options_.depths; ++k) {
    Depth& depth = at(k);
    pass.go_round(round(k));
    const Further& ahead = batch.further[std::size_t(k) - 1];
    Saved saved{.read = read_at(batch.text, ahead), .words = {}, .hidden = hidden};
    saved.words = words_->look_up(pass, saved.read, k + 1);
    saved.after = join(pass, depth, saved);
    auto [y, stats] = depth.final_norm.forward(saved.after);
    saved.final_stats = stats;
    pass.save(std::move(saved));
    head_.measure(pass, y,
                  {.targets = ahead.targets,
                   .mask = ahead.mask,
                   .loss = options_.first_loss + k - 1,
                   .factor = options_.factor * pass.place().factors.ahead[std::size_t(k) - 1]});
    hidden = y;
  }
  pass.go_round(0);
  return in;
}

/// dx of what the block read -> the gradient of the hidden states that the depth began with
Tensor FurtherTokens::join_backward(Pass& pass, int depth, const Saved& saved, const Tensor& dx) {
  Depth& here = at(depth);
  const Tensor djoined = here.join.backward(pass, ops::cast(dx, saved.joined.dtype()), saved.joined);
  const Tensor dwords =
      here.word_norm.backward(copied(side_of(djoined, 0)), {}, saved.words, saved.word_stats);
  words_->look_up_backward(pass, dwords, saved.read, depth + 1);
  return here.hidden_norm.backward(copied(side_of(djoined, 1)), {}, saved.hidden, saved.hidden_stats);
}

Flow FurtherTokens::backward(Pass& pass, const Flow& dout) {
  Tensor later;  // the gradient that the next depth has for this one's end
  for (int k = options_.depths; k > 0; --k) {
    pass.go_round(round(k));
    const Tensor dy = head_.hand_on(pass);
    if (later) ops::add_into(dy, dy, later);
    const Saved saved = pass.take<Saved>();
    Depth& depth = at(k);
    const Tensor dafter = depth.final_norm.backward(dy, {}, saved.after, saved.final_stats);
    later = join_backward(pass, k, saved, depth.block->backward(pass, {dafter, {}, {}}).hidden);
  }
  pass.go_round(0);
  ops::add_into(dout.hidden, dout.hidden, later);
  return dout;
}

void FurtherTokens::each_of_depths(const VisitParameter& visit) {
  for (Depth& depth : depths_) {
    depth.word_norm.each_parameter(visit);
    depth.hidden_norm.each_parameter(visit);
    depth.join.each_parameter(visit);
    depth.block->each_parameter(visit);
    depth.final_norm.each_parameter(visit);
  }
}

void FurtherTokens::each_parameter(const VisitParameter& visit) {
  words_->each_parameter(visit);
  each_of_depths(visit);
}

void FurtherTokens::each_read(const VisitParameter& visit) {
  words_->each_read(visit);
  head_.each_read(visit);
  each_of_depths(visit);
}

}  // namespace weft
