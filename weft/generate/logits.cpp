// One forward of the whole text; the output layer multiplies the positions that are asked for and no others.
#include "weft/generate/logits.h"

#include <numeric>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/nn/heads.h"
#include "weft/nn/region.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// The text as a batch of one. Sequence-parallel ranks need equal parts, so it is filled up behind; nothing
/// before sees what comes after.
Batch batch_of(std::span<const std::int32_t> text, int ranks, Device& device) {
  const auto s = round_up(std::int64_t(text.size()), std::int64_t(ranks));
  std::vector<std::int32_t> tokens(text.begin(), text.end());
  tokens.resize(std::size_t(s), 0);
  std::vector<std::int32_t> places(static_cast<std::size_t>(s));
  std::iota(places.begin(), places.end(), 0);
  Batch batch;
  batch.tokens = from_host(device, {s, 1}, tokens);
  batch.places = from_host(device, {s}, places);
  batch.positions = from_host(device, {s, 1}, places);
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

/// Of the last `count` of `tokens` positions.
Tensor measured(const Stage& stage, const TensorParallel& tp, const Flow& flow, std::int64_t tokens,
                std::int64_t count) {
  const auto* head = dynamic_cast<const LanguageHead*>(stage.layers.back().get());
  if (!head) fail(Kind::internal, "generate: the model does not end in a language head");
  const Tensor hidden = enter(tp, flow.hidden).wait().rows();
  return head->logits(hidden.slice(0, tokens - count, count));
}

}  // namespace

std::vector<float> logits_of(const ModelHere& model, std::span<const std::int32_t> tokens, std::int64_t count,
                             Pass& pass) {
  const Batch batch = batch_of(tokens, model.tp.size(), model.device);
  pass.open(batch, {.training = false});
  Flow flow;
  walk(model.stage, pass, flow);
  return joined(measured(model.stage, model.tp, flow, std::ssize(tokens), count), model.config.vocabulary,
                model.tp);
}

std::vector<float> logits_of(const ModelInParts& model, std::span<const std::int32_t> tokens,
                             std::int64_t count) {
  const Batch batch = batch_of(tokens, model.tp.size(), model.device);
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
    out =
        joined(measured(stage, model.tp, flow, std::ssize(tokens), count), model.config.vocabulary, model.tp);
  });
  return out;
}

}  // namespace weft
