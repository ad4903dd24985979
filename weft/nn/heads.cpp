// The loss in pieces that ranks can agree on: greatest logit, sum of exponentials, logit of the target.
#include "weft/nn/heads.h"

#include <algorithm>
#include <array>

#include "weft/base/number.h"
#include "weft/nn/region.h"
#include "weft/ops/activation.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/embedding.h"
#include "weft/ops/loss.h"
#include "weft/ops/matmul.h"
#include "weft/tensor/named.h"

namespace weft {
namespace {

Tensor scaled(const Tensor& x, float factor) {
  Tensor out = empty_like(x);
  ops::copy_into(out, x);
  ops::scale_in_place(out, factor);
  return out;
}

}  // namespace

Flow NormLayer::forward(Pass& pass, const Flow& in) {
  auto [y, stats] = norm_.forward(in.hidden);
  pass.see(seen_as_, -1, y);
  pass.save(Saved{in.hidden, stats});
  Flow out = in;
  out.hidden = y;
  return out;
}

Flow NormLayer::backward(Pass& pass, const Flow& dout) {
  const Saved saved = pass.take<Saved>();
  Flow d = dout;
  const Norm::Slopes slopes = norm_.backward_and_rounded(dout.hidden, {}, {saved.x, saved.stats}, true);
  d.hidden = slopes.dx;
  d.rounded = slopes.rounded;
  return d;
}

/// Rows [from, from + count) of everything that has a row a token.
struct LanguageHead::Chunk {
  Tensor x, dx;                  // [c, h]; dx is empty where there is no backward
  Tensor targets, mask, losses;  // [c]
};

/// x [c, h], words [v, h] -> [c, v]
LanguageHead::Logits LanguageHead::logits(const Tensor& x, const Tensor& words, const Tensor& bias) const {
  Tensor y = ops::matmul(x, words, {.b = Read::transposed, .bias = bias});
  const float cap = options_.cap, factor = cap > 0 ? options_.multiplier / cap : options_.multiplier;
  if (factor != 1) ops::scale_in_place(y, factor);
  if (cap == 0) return {y, {}};
  const Tensor capped = ops::activation(y, {}, Activation::tanh);
  ops::scale_in_place(capped, cap);
  return {capped, y};
}

/// dy of what left logits() becomes that of the product; both factors of a cap are one.
void LanguageHead::logits_backward(const Tensor& dy, const Tensor& over_cap) const {
  if (over_cap) ops::activation_backward_into(dy, dy, over_cap, {}, Activation::tanh);
  if (options_.multiplier != 1) ops::scale_in_place(dy, options_.multiplier);
}

// The output layer multiplies the places that are asked for and no others.
void LanguageHead::answer(Pass& pass, const Tensor& x) const {
  const Tensor full = options_.context.whole(enter(options_.tp, x).wait());
  const Tensor asked = full.slice(0, pass.place().logits_from, pass.place().logits_count);
  pass.set_logits(logits(asked.rows(), output().value, bias_ ? bias_->value : Tensor()).y);
}

/// The words of some of this rank's rows.
VocabularyPart LanguageHead::part(const Share& rows) const {
  VocabularyPart part = options_.part;
  part.first = std::min(part.first + rows.from, part.whole);
  part.count = std::clamp(options_.part.count - rows.from, std::int64_t{0}, rows.count);
  return part;
}

// Exact mode adds fixed parts of the vocabulary as a tree, whoever holds them.
ops::LossSums LanguageHead::sums_here(const Tensor& max, const Tensor& logits, const Tensor& targets) const {
  const int slabs_now = slabs();
  const std::int64_t first = words_cut().share(output().shape[0]).from;
  const std::int64_t columns = exact(logits.dim(1), std::int64_t{slabs_now});
  std::array<ops::LossSums, exact_slabs> sums;
  for (int i = 0; i < slabs_now; ++i)
    sums[std::size_t(i)] = ops::loss_sums(max, logits.slice(1, i * columns, columns), targets,
                                          part({first + i * columns, columns}));
  for (std::size_t step = 1; step < std::size_t(slabs_now); step *= 2)
    for (std::size_t i = 0; i < std::size_t(slabs_now); i += 2 * step)
      ops::add_into(sums[i].all, sums[i].all, sums[i + step].all);
  return sums.front();
}

LossParts LanguageHead::parts(const Tensor& logits, const Tensor& targets) const {
  const TokenCut cut = words_cut();
  const Tensor max = ops::loss_max(logits, part(cut.share(output().shape[0])));
  if (cut.cut()) cut.circle().all_reduce(max, Reduce::max).wait();
  options_.tp.circle.all_reduce(max, Reduce::max).wait();
  const ops::LossSums sums = sums_here(max, logits, targets);
  if (cut.cut()) cut.circle().all_reduce(sums.all, Reduce::sum).wait();
  options_.tp.circle.all_reduce(sums.all, Reduce::sum).wait();
  return sums.parts;
}

bool LanguageHead::loses_in_one_walk(const Tensor& logits) const {
  return options_.tp.size() == 1 && !words_cut().cut() && slabs() == 1 && ops::loses_in_one_walk(logits);
}

// y = cap(m x W^T), dy = factor (softmax(y) - onehot) cap'(y)  =>  dx = m dy W,  dW += m dy^T x
void LanguageHead::measure(const Chunk& chunk, const Pass& pass, float factor) const {
  const Share rows = words_cut().share(output().shape[0]);
  const Tensor weights = output().value.slice(0, rows.from, rows.count);
  const Tensor bias = bias_ ? bias_->value.slice(0, rows.from, rows.count) : Tensor();
  const auto [y, over_cap] = logits(chunk.x, weights, bias);
  pass.see("logits", -1, y);
  if (chunk.dx && loses_in_one_walk(y)) {
    const LossTargets targets{chunk.targets, scaled(chunk.mask, factor)};
    ops::multiply_into(chunk.losses, ops::loss_and_gradient_in_place(y, targets, part(rows)), chunk.mask);
  } else {
    const LossParts shared = parts(y, chunk.targets);
    ops::multiply_into(chunk.losses, ops::loss_finish(shared), chunk.mask);
    if (!chunk.dx) return;
    ops::loss_backward_in_place(y, shared, {chunk.targets, scaled(chunk.mask, factor)}, part(rows));
  }
  logits_backward(y, over_cap);
  ops::matmul_into(chunk.dx, y, weights, {.slabs = slabs()});
  if (output().grad.wanted()) {
    const GradPlace dw = output().grad.place(rows.from, rows.count);
    ops::matmul_into(dw.sum, y, chunk.x, {.a = Read::transposed, .accumulate = dw.on_top});
  }
  if (bias_ && bias_->grad.wanted()) ops::sum_rows_into(bias_->grad.sum().slice(0, rows.from, rows.count), y);
}

// Exact sums have whole sequences as leaves, so there all rows stay.
LanguageHead::Rows LanguageHead::rows_of(const Tensor& full, const Guess& guess) const {
  const Guesses& few = guess.few;
  if (few.rows && !options_.tp.sums.whole_sequences())
    return {ops::gather(full.rows(), few.rows), few.targets, few.mask, few.rows};
  const TokenCut cut = words_cut();
  const Tensor x = full.rows();
  return {x, cut.whole(guess.targets).view({x.dim(0)}), cut.whole(guess.mask).view({x.dim(0)}), {}};
}

void LanguageHead::measure(Pass& pass, const Tensor& hidden, const Guess& guess) const {
  const Named named(hidden.device(), "output and loss");
  const TokenCut cut = words_cut();
  const Tensor full = cut.whole(enter(options_.tp, hidden).wait());
  const auto [x, targets, mask, rows] = rows_of(full, guess);
  const std::int64_t tokens = x.dim(0);
  const Tensor losses = empty(x.device(), {tokens});
  const bool wanted = pass.training() && !pass.forgetful();
  if (tied_ && wanted) pass.after_the_other();  // it may be an embedding's, too
  const Dtype kept = options_.tp.sums.term(x.dtype());
  const Tensor dx = wanted ? empty(x.device(), x.shape(), kept) : Tensor();
  for (std::int64_t from = 0; from < tokens; from += options_.chunk) {
    const std::int64_t count = std::min(options_.chunk, tokens - from);
    const auto some = [&](const Tensor& t) { return t ? t.slice(0, from, count) : t; };
    measure({some(x), some(dx), some(targets), some(mask), some(losses)}, pass, guess.factor);
  }
  const Tensor mine = rows ? losses : cut.here(losses.view({full.dim(0), full.dim(1)}));
  pass.add_loss(guess.loss, mine.view({mine.elements()}));
  if (dx) {
    output().grad.added();
    if (bias_) bias_->grad.added();
    pass.save(Saved{dx, x.dtype(), full.shape(), rows});
  }
}

/// Zeros where nothing was guessed. A row that fills up stands for itself as often as it is there: zeros,
/// too.
Tensor LanguageHead::spread(const Saved& saved) {
  const Tensor& dx = saved.dx;
  const Tensor all = ops::zeros(dx.device(), {saved.full[0] * saved.full[1], saved.full[2]});
  ops::scatter_add_into(all, dx, saved.rows);
  return ops::cast(all, dx.dtype()).view(saved.full);
}

Flow LanguageHead::forward(Pass& pass, const Flow& in) {
  if (pass.place().logits_count > 0)
    answer(pass, in.hidden);
  else
    measure(pass, in.hidden,
            {pass.batch().targets, pass.batch().mask, options_.loss_number, pass.place().factors.token,
             pass.batch().guesses});
  return {};
}

Flow LanguageHead::backward(Pass& pass, const Flow&) { return {hand_on(pass), {}}; }

Tensor LanguageHead::hand_on(Pass& pass) const {
  const Saved saved = pass.take<Saved>();
  const TokenCut cut = words_cut();
  if (cut.cut()) cut.circle().all_reduce(saved.dx, Reduce::sum).wait();
  const Tensor dx = saved.rows ? spread(saved) : saved.dx.view(saved.full);
  return ops::cast(leave(options_.tp, cut.here(dx)).wait(), saved.dtype);
}

void LanguageHead::each_parameter(const VisitParameter& visit) {
  if (own_) visit(*own_);
  if (bias_) visit(*bias_);
}

}  // namespace weft
