// One forward of the whole text, as a schedule of forwards only.
#include "weft/generate/logits.h"

#include <numeric>

#include "weft/base/number.h"
#include "weft/model/kinds.h"
#include "weft/nn/context_parts.h"
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

/// The text as a batch of one, of token type 0. Ranks need equal parts of it, so it is filled up behind,
/// which nothing before sees: in a family that sees both ways, because it is padding.
Batch batch_of(std::span<const std::int32_t> text, const ModelConfig& config, int ranks,
               const ContextParallel& context, Device& device) {
  const int parts = context.cut() ? 2 * context.circle->size() : 1;
  const auto s = round_up(std::int64_t(text.size()), std::int64_t{parts} * ranks);
  const std::vector<std::int32_t> places = places_here(context, s);
  std::vector<std::int32_t> tokens;
  for (const std::int32_t place : places)
    tokens.push_back(std::size_t(place) < text.size() ? text[std::size_t(place)] : 0);
  const auto here = std::int64_t(places.size());
  Batch batch;
  batch.text.tokens = from_host(device, {here, 1}, tokens);
  batch.text.places = from_host(device, {here}, places);
  batch.text.positions = from_host(device, {here, 1}, places);
  batch.text.types = from_host(device, {here, 1}, std::vector<std::int32_t>(places.size(), 0));
  if (s > std::int64_t(text.size()) && !kind_of(config).continues) {
    std::vector<std::int32_t> there;
    for (const std::int32_t place : places) there.push_back(std::size_t(place) < text.size() ? 0 : -1);
    batch.text.documents = from_host(device, {1, here}, there);
  }
  batch.samples = from_host(device, {1}, std::vector<std::int64_t>{0});
  return batch;
}

/// A pass that asks for the logits of the last `count` of so many tokens.
StepPlace asking(std::int64_t tokens, std::int64_t count) {
  return {.training = false, .logits_from = tokens - count, .logits_count = count};
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

}  // namespace

TextReader::TextReader(const ModelHere& model)
    : model_(model),
      schedule_(pipe::with_transfers(
          pipe::forwards_only(model.pipeline ? model.pipeline->home : std::vector<int>{0}, 1))),
      runner_(schedule_, model.stages, circle(), model.device) {}

pipe::Parcel TextReader::parcel(const Batch& batch) const {
  const std::int64_t parts = model_.tp.sequence_cut() ? model_.tp.size() : 1;
  return {.hidden = {exact(batch.text.tokens.dim(0), parts), 1, model_.config.hidden},
          .memory = {},
          .dtype = model_.pipeline ? model_.pipeline->dtype : Dtype::f32};
}

/// The numbers of the rank that has the last stage.
std::vector<float> TextReader::told_by_the_last(const std::vector<float>& mine) {
  const Tensor told = from_host(model_.device, {std::int64_t(mine.size())}, mine);
  circle().broadcast(told, schedule_.home.back()).wait();
  return to_host<float>(told);
}

std::vector<float> TextReader::logits(std::span<const std::int32_t> tokens, std::int64_t count) {
  const Batch batch = batch_of(tokens, model_.config, model_.tp.size(), model_.context, model_.device);
  const pipe::Parcel parcel_of_batch = parcel(batch);
  const LossFactors unused;
  std::vector<float> out(std::size_t(count * model_.config.vocabulary));
  runner_.run(
      {.microbatches = {&batch, 1},
       .loss_factors = {&unused, 1},
       .place = asking(std::ssize(tokens), count),
       .parcels = {&parcel_of_batch, 1}},
      [&](int, const Pass& pass) { out = joined(pass.logits(), model_.config.vocabulary, model_.tp); });
  return schedule_.ranks > 1 ? told_by_the_last(out) : out;
}

std::vector<float> logits_of(const ModelInParts& model, std::span<const std::int32_t> tokens,
                             std::int64_t count) {
  const Batch batch = batch_of(tokens, model.config, model.tp.size(), {}, model.device);
  Pass pass;
  pass.open(batch, asking(std::ssize(tokens), count));
  Flow flow;
  const auto forward = [&](const Stage& stage) { flow = stage.forward(pass, flow); };
  model.with({.embeds = true, .measures = false}, forward);
  for (int layer = 0; layer < model.config.layers; ++layer)
    model.with({.first_layer = layer, .layers = 1, .embeds = false, .measures = false}, forward);
  model.with({.first_layer = model.config.layers, .embeds = false}, forward);
  return joined(pass.logits(), model.config.vocabulary, model.tp);
}

}  // namespace weft
