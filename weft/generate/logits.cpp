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
Batch batch_of(const ModelHere& model, std::span<const std::int32_t> text) {
  const auto s = round_up(std::int64_t(text.size()), std::int64_t(model.tp.size()));
  std::vector<std::int32_t> tokens(text.begin(), text.end());
  tokens.resize(std::size_t(s), 0);
  std::vector<std::int32_t> places(static_cast<std::size_t>(s));
  std::iota(places.begin(), places.end(), 0);
  Device& device = model.device;
  Batch batch;
  batch.tokens = from_host(device, {s, 1}, tokens);
  batch.places = from_host(device, {s}, places);
  batch.positions = from_host(device, {s, 1}, places);
  batch.samples = from_host(device, {1}, std::vector<std::int64_t>{0});
  return batch;
}

/// Every rank's columns side by side, without the rows of padding behind the vocabulary.
std::vector<float> joined(const Tensor& mine, const ModelHere& model) {
  const std::int64_t rows = mine.dim(0), columns = mine.dim(1), ranks = model.tp.size();
  const Tensor all = empty(model.device, {ranks * rows, columns}, mine.dtype());
  model.tp.circle.all_gather(all, mine).wait();
  const std::vector<double> values = numbers(all);
  std::vector<float> out(std::size_t(rows * model.config.vocabulary));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t word = 0; word < model.config.vocabulary; ++word)
      out[std::size_t(row * model.config.vocabulary + word)] =
          float(values[std::size_t((word / columns * rows + row) * columns + word % columns)]);
  return out;
}

}  // namespace

std::vector<float> logits_of(const ModelHere& model, std::span<const std::int32_t> tokens, std::int64_t count,
                             Pass& pass) {
  const Batch batch = batch_of(model, tokens);
  pass.open(batch, {.training = false});
  Flow flow;
  for (std::size_t i = 0; i + 1 < model.stage.layers.size(); ++i)
    flow = model.stage.layers[i]->forward(pass, flow);
  const auto* head = dynamic_cast<const LanguageHead*>(model.stage.layers.back().get());
  if (!head) fail(Kind::internal, "generate: the model does not end in a language head");
  const Tensor hidden = enter(model.tp, flow.hidden).wait().rows();
  return joined(head->logits(hidden.slice(0, std::int64_t(tokens.size()) - count, count)), model);
}

}  // namespace weft
