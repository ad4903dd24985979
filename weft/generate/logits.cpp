// One forward of the whole text, as a schedule of forwards only.
#include "weft/generate/logits.h"

#include <algorithm>
#include <numeric>

#include "weft/base/number.h"
#include "weft/model/kinds.h"
#include "weft/model/relative.h"
#include "weft/nn/context_parts.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// Which places of s tokens this rank holds.
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

/// Where a text's tokens lie: over so many ranks, whose parts are equal.
struct Room {
  const ContextParallel& context;
  Device& device;
  std::int64_t parts = 1;

  Room(const ModelHere& model)
      : context(model.context),
        device(model.device),
        parts((model.context.cut() ? 2 * model.context.circle->size() : 1) * std::int64_t{model.tp.size()}) {}
  Room(const ModelInParts& model, const ContextParallel& whole)
      : context(whole), device(model.device), parts(model.tp.size()) {}
  std::int64_t filled(std::size_t tokens) const { return round_up(std::int64_t(tokens), parts); }
};

/// Tokens of a text, and how many stand before them.
struct Excerpt {
  std::span<const std::int32_t> tokens;
  std::int64_t before = 0;
};

/// One text, of token type 0, filled up behind; with `padding`, that is told.
Sequences sequence_of(const Excerpt& excerpt, const Room& room, bool padding) {
  const std::span<const std::int32_t> text = excerpt.tokens;
  std::vector<std::int32_t> places = places_here(room.context, room.filled(text.size()));
  std::vector<std::int32_t> tokens, there;
  for (const std::int32_t place : places) {
    const bool given = std::size_t(place) < text.size();
    tokens.push_back(given ? text[std::size_t(place)] : 0);
    there.push_back(given ? 0 : -1);
  }
  for (std::int32_t& place : places) place += std::int32_t(excerpt.before);
  const auto here = std::int64_t(places.size());
  Sequences out;
  out.tokens = from_host(room.device, {here, 1}, tokens);
  out.places = from_host(room.device, {here}, places);
  out.positions = from_host(room.device, {here, 1}, places);
  out.types = from_host(room.device, {here, 1}, std::vector<std::int32_t>(places.size(), 0));
  if (padding) out.segments = from_host(room.device, {1, here}, there);
  return out;
}

/// A batch of one. What fills it up is seen by nothing before it where tokens see those before them, and is
/// padding where they see both ways.
Batch batch_of(const Excerpt& text, std::span<const std::int32_t> source, const ModelConfig& config,
               const Room& room) {
  const bool filled = room.filled(text.tokens.size()) > std::ssize(text.tokens) ||
                      room.filled(source.size()) > std::ssize(source);
  const bool padding = filled && kind_of(config).speech != Speech::continues;
  Batch batch;
  batch.text = sequence_of(text, room, padding);
  if (!source.empty()) batch.source = sequence_of({source}, room, padding);
  batch.hold_samples(room.device, {0});
  return batch;
}

/// A pass that asks for the logits of the last `count` of so many tokens.
StepPlace asking(std::int64_t tokens, std::int64_t count) {
  return {.training = false, .logits_from = tokens - count, .logits_count = count};
}

Carried without_memory(Carried carried) {
  carried.memory = {};
  return carried;
}

/// Every rank's columns side by side, without the rows of padding behind the vocabulary.
std::vector<float> joined(const Tensor& mine, std::int64_t vocabulary, const TensorParallel& tp) {
  const std::int64_t rows = mine.dim(0), columns = mine.dim(1), ranks = tp.size();
  const Tensor all = empty(mine.device(), {ranks * rows, columns}, mine.dtype());
  tp.circle.all_gather(all, mine).wait();
  std::vector<float> out(std::size_t(rows * vocabulary));
  visit_float(all.dtype(), [&]<class T>() {
    const std::vector<T> values = to_host<T>(all);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t from = 0; from < vocabulary; from += columns) {
        const auto first = values.begin() + (from / columns * rows + row) * columns;
        std::copy_n(first, std::min(columns, vocabulary - from), out.begin() + row * vocabulary + from);
      }
  });
  return out;
}

}  // namespace

// In eight bits a tensor's scale is that of all its rows; places in experts that are full go to who comes
// first; and exact sums have the bits of a text read at once.
bool may_read_on(const ModelConfig& m) {
  const auto& capacity =
      m.experts.router.capacity_evaluating ? m.experts.router.capacity_evaluating : m.experts.router.capacity;
  return kind_of(m).speech != Speech::guesses && !m.fp8.on() && !m.exact &&
         (m.experts.count == 0 || !capacity);
}

TextReader::TextReader(const ModelHere& model)
    : model_(model),
      schedule_(pipe::with_transfers(
          pipe::forwards_only(model.pipeline ? model.pipeline->home : std::vector<int>{0}, 1))),
      runner_(schedule_, model.stages, circle(), model.device),
      keeps_(!model.context.cut() && may_read_on(model.config)) {
  earlier_.room = Room(model).filled(std::size_t(side_length(model.config, Side::text)));
}

/// By the stage that they travel into. What an encoder made travels once.
std::vector<pipe::Parcel> TextReader::parcels(const Batch& batch) const {
  if (model_.pipeline == nullptr) return std::vector<pipe::Parcel>(1);
  const CutOver cut{.tp = model_.tp.size(), .sequence = model_.tp.sequence_cut()};
  std::vector<pipe::Parcel> out;
  for (const StagePart& part : model_.pipeline->parts) {
    Carried carried = kind_of(model_.config).carried(model_.config, part, batch, cut);
    if (encoded_.known) carried = carried.of_encoder ? Carried() : without_memory(carried);
    out.push_back({.hidden = carried.hidden,
                   .memory = carried.memory,
                   .biases = carried.biases,
                   .dtype = model_.pipeline->dtype,
                   .residual = residual_type(model_.config)});
  }
  return out;
}

/// The numbers of the rank that has the last stage.
std::vector<float> TextReader::told_by_the_last(const std::vector<float>& mine) {
  const Tensor told = from_host(model_.device, {std::int64_t(mine.size())}, mine);
  circle().broadcast(told, schedule_.home.back()).wait();
  return to_host<float>(told);
}

std::int64_t TextReader::known_of(std::span<const std::int32_t> tokens, std::int64_t count) const {
  const std::int64_t known = std::ssize(read_), rest = std::ssize(tokens) - known;
  if (rest < count || known + Room(model_).filled(std::size_t(rest)) > earlier_.room) return 0;
  return std::ranges::equal(read_, tokens.first(read_.size())) ? known : 0;
}

std::vector<float> TextReader::logits(std::span<const std::int32_t> tokens, std::int64_t count,
                                      std::span<const std::int32_t> source) {
  if (!std::ranges::equal(source, source_)) {
    encoded_ = {};
    read_.clear();
  }
  source_.assign(source.begin(), source.end());
  earlier_.tokens = known_of(tokens, count);
  read_.clear();  // until all layers have read as far
  const Excerpt text{tokens.subspan(std::size_t(earlier_.tokens)), earlier_.tokens};
  earlier_.now = std::ssize(text.tokens);
  const Batch batch = batch_of(text, source, model_.config, Room(model_));
  const std::vector<pipe::Parcel> travelling = parcels(batch);
  StepPlace place = asking(std::ssize(text.tokens), count);
  const bool keeps = keeps_ && batch.text.tokens.dim(0) + text.before <= earlier_.room;
  if (keeps) place.earlier = &earlier_;
  if (!source.empty()) place.encoded = &encoded_;
  const LossFactors unused;
  std::vector<float> out(std::size_t(count * model_.config.vocabulary));
  runner_.run(
      {.microbatches = {&batch, 1}, .loss_factors = {&unused, 1}, .place = place, .parcels = travelling},
      [&](int, const Pass& pass) { out = joined(pass.logits(), model_.config.vocabulary, model_.tp); });
  encoded_.known = !source.empty();
  read_.assign(tokens.begin(), keeps ? tokens.end() : tokens.begin());
  return schedule_.ranks > 1 ? told_by_the_last(out) : out;
}

std::vector<float> logits_of(const ModelInParts& model, std::span<const std::int32_t> tokens,
                             std::int64_t count) {
  const int layers = model.config.layers + model.config.decoder_layers;
  const auto source = model.config.decoder_layers > 0 ? tokens : std::span<const std::int32_t>();
  const ContextParallel whole;
  const Batch batch = batch_of({tokens}, source, model.config, Room(model, whole));
  Pass pass;
  pass.open(batch, asking(std::ssize(tokens), count));
  Flow flow;
  const auto forward = [&](const Stage& stage) { flow = stage.forward(pass, flow); };
  model.with({.embeds = true, .measures = false}, forward);
  for (int layer = 0; layer < layers; ++layer)
    model.with({.first_layer = layer, .layers = 1, .embeds = false, .measures = false}, forward);
  model.with({.first_layer = layers, .embeds = false}, forward);
  return joined(pass.logits(), model.config.vocabulary, model.tp);
}

}  // namespace weft
