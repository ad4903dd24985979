// One forward of the whole text, stage by stage; the output layer multiplies the positions that are asked for
// and no others.
#include "weft/generate/logits.h"

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/nn/context_parts.h"
#include "weft/nn/heads.h"
#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// Which places of a text of s tokens this rank holds.
std::vector<std::int32_t> places_here(const ContextParallel& context, std::int64_t s) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(s));
  std::iota(places.begin(), places.end(), 0);
  if (!context.cut()) return places;
  const Zigzag zigzag{context.circle->size(), s / (2 * context.circle->size())};
  std::vector<std::int32_t> mine;
  for (const int half : {0, 1}) {
    const auto start = places.begin() + zigzag.start(context.circle->rank(), half);
    mine.insert(mine.end(), start, start + zigzag.chunk);
  }
  return mine;
}

/// The text as a batch of one. Ranks need equal parts of it, so it is filled up behind; nothing before sees
/// what comes after.
Batch batch_of(std::span<const std::int32_t> text, int ranks, const ContextParallel& context,
               Device& device) {
  const int parts = context.cut() ? 2 * context.circle->size() : 1;
  const auto s = round_up(std::int64_t(text.size()), std::int64_t{parts} * ranks);
  const std::vector<std::int32_t> places = places_here(context, s);
  std::vector<std::int32_t> tokens;
  for (const std::int32_t place : places)
    tokens.push_back(std::size_t(place) < text.size() ? text[std::size_t(place)] : 0);
  const auto here = std::int64_t(places.size());
  Batch batch;
  batch.tokens = from_host(device, {here, 1}, tokens);
  batch.places = from_host(device, {here}, places);
  batch.positions = from_host(device, {here, 1}, places);
  batch.samples = from_host(device, {1}, std::vector<std::int64_t>{0});
  return batch;
}

/// Every rank's columns side by side, without the rows of padding behind the vocabulary.
std::vector<float> joined(const Tensor& mine, std::int64_t vocabulary, const TensorParallel& tp) {
  const std::int64_t rows = mine.dim(0), columns = mine.dim(1), ranks = tp.size();
  const Tensor all = empty(mine.device(), {ranks * rows, columns}, mine.dtype());
  tp.circle.all_gather(all, mine).wait();
  const std::vector<double> values = numbers(all);
  std::vector<float> out(std::size_t(rows * vocabulary));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t word = 0; word < vocabulary; ++word)
      out[std::size_t(row * vocabulary + word)] =
          float(values[std::size_t((word / columns * rows + row) * columns + word % columns)]);
  return out;
}

/// The layers from the flow on; the output layer, if this is the last stage, leaves logits.
void walk(const Stage& stage, Pass& pass, Flow& flow) {
  for (const auto& layer : stage.layers)
    if (dynamic_cast<const LanguageHead*>(layer.get()) == nullptr) flow = layer->forward(pass, flow);
}

/// x [s/c, h] of each context-parallel rank -> the places [from, from + count) of the text [count, h]
Tensor rows_of_text(const ContextParallel& context, const Tensor& x, std::int64_t from, std::int64_t count) {
  if (!context.cut()) return x.slice(0, from, count);
  const int ranks = context.circle->size();
  const Tensor all = empty(x.device(), {ranks * x.dim(0), x.dim(1)}, x.dtype());
  context.circle->all_gather(all, x).wait();
  const Zigzag zigzag{ranks, x.dim(0) / 2};
  const Tensor rows = empty(x.device(), {count, x.dim(1)}, x.dtype());
  for (int rank = 0; rank < ranks; ++rank)
    for (const int half : {0, 1}) {
      const std::int64_t start = zigzag.start(rank, half);
      const std::int64_t first = std::max(from, start);
      const std::int64_t end = std::min(from + count, start + zigzag.chunk);
      const std::int64_t at = rank * x.dim(0) + half * zigzag.chunk + first - start;
      if (first < end)
        ops::copy_into(rows.slice(0, first - from, end - first), all.slice(0, at, end - first));
    }
  return rows;
}

/// rows [count, h] as the last stage leaves them -> logits [count, v/tp]
Tensor measured(const Stage& stage, const Tensor& rows) {
  const auto* head = dynamic_cast<const LanguageHead*>(stage.layers.back().get());
  if (!head) fail(Kind::internal, "generate: the model does not end in a language head");
  return head->logits(rows);
}

/// A stage after the other; what the last one leaves is where it lives.
void walk_the_pipeline(const ModelHere& model, Pass& pass, Flow& flow) {
  const PipelineHere& p = *model.pipeline;
  const std::int64_t parts = model.tp.sequence_cut() ? model.tp.size() : 1;
  const Shape parcel{exact(pass.batch().tokens.dim(0), parts), 1, model.config.hidden};
  for (int i = 0; i < int(p.home.size()); ++i) {
    const int before = i > 0 ? p.home[std::size_t(i) - 1] : p.home[0], here = p.home[std::size_t(i)];
    if (before != here && before == p.circle.rank()) p.circle.send(flow.hidden, here, i).wait();
    if (here != p.circle.rank()) continue;
    if (before != here) {
      flow.hidden = empty(model.device, parcel, p.dtype);
      p.circle.recv(flow.hidden, before, i).wait();
    }
    walk(p.stages.at(i), pass, flow);
  }
}

/// The numbers of the rank that has the last stage.
std::vector<float> told_by_the_last(const PipelineHere& p, Device& device, const std::vector<float>& mine) {
  const Tensor told = from_host(device, {std::int64_t(mine.size())}, mine);
  p.circle.broadcast(told, p.home.back()).wait();
  return to_host<float>(told);
}

}  // namespace

std::vector<float> logits_of(const ModelHere& model, std::span<const std::int32_t> tokens, std::int64_t count,
                             Pass& pass) {
  const PipelineHere* p = model.pipeline;
  const Batch batch = batch_of(tokens, model.tp.size(), model.context, model.device);
  pass.open(batch, {.training = false});
  Flow flow;
  if (p)
    walk_the_pipeline(model, pass, flow);
  else
    walk(model.stage, pass, flow);
  std::vector<float> out(std::size_t(count * model.config.vocabulary));
  if (!p || p->home.back() == p->circle.rank()) {
    const Stage& last = p ? p->stages.at(int(p->home.size()) - 1) : model.stage;
    const Tensor x = enter(model.tp, flow.hidden).wait().rows();
    const Tensor rows = rows_of_text(model.context, x, std::ssize(tokens) - count, count);
    out = joined(measured(last, rows), model.config.vocabulary, model.tp);
  }
  return p ? told_by_the_last(*p, model.device, out) : out;
}

std::vector<float> logits_of(const ModelInParts& model, std::span<const std::int32_t> tokens,
                             std::int64_t count) {
  const Batch batch = batch_of(tokens, model.tp.size(), {}, model.device);
  Pass pass;
  pass.open(batch, {.training = false});
  Flow flow;
  const auto forward = [&](const Stage& stage) { walk(stage, pass, flow); };
  model.with({.embeds = true, .measures = false}, forward);
  for (int layer = 0; layer < model.config.layers; ++layer)
    model.with({.first_layer = layer, .layers = 1, .embeds = false, .measures = false}, forward);
  std::vector<float> out;
  model.with({.first_layer = model.config.layers, .embeds = false}, [&](const Stage& stage) {
    walk(stage, pass, flow);
    const Tensor x = enter(model.tp, flow.hidden).wait().rows();
    out = joined(measured(stage, x.slice(0, std::ssize(tokens) - count, count)), model.config.vocabulary,
                 model.tp);
  });
  return out;
}

}  // namespace weft
