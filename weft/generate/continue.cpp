// One forward a token; the context is cut to what the model was trained to see.
#include "weft/generate/continue.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/base/random.h"
#include "weft/nn/heads.h"
#include "weft/nn/region.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// The context as a batch of one. Sequence-parallel ranks need equal parts, so it is filled up behind;
/// nothing before sees what comes after.
Batch batch_of(const Speaker& speaker, std::span<const std::int32_t> context) {
  const auto s = round_up(std::int64_t(context.size()), std::int64_t(speaker.tp.size()));
  std::vector<std::int32_t> tokens(context.begin(), context.end());
  tokens.resize(std::size_t(s), 0);
  std::vector<std::int32_t> places(static_cast<std::size_t>(s));
  std::iota(places.begin(), places.end(), 0);
  Device& device = speaker.device;
  Batch batch;
  batch.tokens = from_host(device, {s, 1}, tokens);
  batch.places = from_host(device, {s}, places);
  batch.positions = from_host(device, {s, 1}, places);
  batch.samples = from_host(device, {1}, std::vector<std::int64_t>{0});
  return batch;
}

std::vector<float> next_logits(const Speaker& speaker, std::span<const std::int32_t> context, Pass& pass) {
  const Batch batch = batch_of(speaker, context);
  pass.open(batch, {.training = false});
  Flow flow;
  for (std::size_t i = 0; i + 1 < speaker.stage.layers.size(); ++i)
    flow = speaker.stage.layers[i]->forward(pass, flow);
  const auto* head = dynamic_cast<const LanguageHead*>(speaker.stage.layers.back().get());
  if (!head) fail(Kind::internal, "generate: the model does not end in a language head");
  const Tensor hidden = enter(speaker.tp, flow.hidden).wait().rows();
  const Tensor mine = head->logits(hidden.slice(0, std::int64_t(context.size()) - 1, 1));
  const Tensor all = empty(speaker.device, {speaker.tp.size(), mine.dim(1)}, mine.dtype());
  speaker.tp.circle.all_gather(all, mine).wait();
  const std::vector<double> values = numbers(all);
  return {values.begin(), values.begin() + speaker.config.vocabulary};
}

}  // namespace

std::string continue_text(const Speaker& speaker, const Wish& wish,
                          const std::function<void(const std::string&)>& tell) {
  check(wish.choice);
  std::vector<std::int32_t> ids = speaker.tokenizer.encode(wish.prompt);
  if (ids.empty()) fail(Kind::usage, "generate: the prompt has no tokens to go on from");
  const std::size_t prompt = ids.size();
  const auto window = std::size_t(speaker.config.sequence);
  const auto eod = speaker.tokenizer.special("eod");
  const Draw draw({.seed = wish.seed, .purpose = Purpose::sample_text});
  Pass pass;
  std::string said;
  for (std::int64_t i = 0; i < wish.tokens; ++i) {
    const std::size_t from = ids.size() > window ? ids.size() - window : 0;
    const auto logits = next_logits(speaker, std::span(ids).subspan(from), pass);
    const std::int32_t token = choose_token(logits, wish.choice, draw.uniform(std::uint64_t(i)));
    if (eod && token == *eod) break;
    ids.push_back(token);
    // Bytes of one character may be spread over tokens, so the whole is decoded and only what is new is told.
    const std::string text = speaker.tokenizer.decode(std::span(ids).subspan(prompt));
    if (tell && text.starts_with(said)) tell(text.substr(said.size()));
    if (text.starts_with(said)) said = text;
  }
  return speaker.tokenizer.decode(std::span(ids).subspan(prompt));
}

}  // namespace weft
