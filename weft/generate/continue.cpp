// A token at a time; the context is cut to what the model was trained to see.
#include "weft/generate/continue.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/random.h"

namespace weft {
namespace {

// Bytes of one character may be spread over tokens: until the last has come, they decode to this.
constexpr std::string_view unfinished = "\xEF\xBF\xBD";

// Tells what is new in a text that grows; its end is held back while it may still change.
class Teller {
 public:
  explicit Teller(const std::function<void(const std::string&)>& tell) : tell_(tell) {}
  void say(std::string_view text) {
    while (text.ends_with(unfinished)) text.remove_suffix(unfinished.size());
    finish(text);
  }
  void finish(std::string_view text) {
    if (!tell_ || text.size() <= said_) return;
    tell_(std::string(text.substr(said_)));
    said_ = text.size();
  }

 private:
  const std::function<void(const std::string&)>& tell_;
  std::size_t said_ = 0;  // bytes
};

/// What words are added to, and what an encoder reads beside it.
struct Beginning {
  std::vector<std::int32_t> ids, source;
};

std::vector<std::int32_t> prompt_ids(const Speaker& speaker, const std::string& prompt) {
  std::vector<std::int32_t> ids = speaker.tokenizer.encode(prompt);
  if (ids.empty()) fail(Kind::usage, "generate: the prompt has no tokens to go on from");
  check_known(ids, speaker.model.config);
  return ids;
}

Beginning beginning_of(const Speaker& speaker, const Wish& wish) {
  const ModelConfig& config = speaker.model.config;
  Beginning out{.ids = prompt_ids(speaker, wish.prompt), .source = {}};
  if (config.decoder_layers == 0) return out;
  out.source.swap(out.ids);
  if (wish.closes && out.source.back() != *wish.closes) out.source.push_back(*wish.closes);
  if (std::ssize(out.source) > config.sequence)
    fail(Kind::usage, "generate: the prompt has ", out.source.size(),
         " tokens, and the model's encoder reads ", config.sequence, " at most");
  const auto start = wish.start ? wish.start : decoder_start(speaker.tokenizer);
  if (!start || *start < 0)
    fail(Kind::usage,
         "generate: nothing says what the decoder starts with: the tokenizer has no token that "
         "begins a text, and no padding");
  out.ids = {*start};
  check_known(out.ids, config);
  return out;
}

/// Ids that end a text.
std::vector<std::int32_t> ends_of(const Speaker& speaker, const Wish& wish) {
  std::vector<std::int32_t> ends = wish.ends;
  const bool answers = speaker.model.config.decoder_layers > 0;
  for (const char* name : {"eod", "eos"})
    if (const auto id = speaker.tokenizer.special(name); id && (answers || std::string_view(name) == "eod"))
      ends.push_back(*id);
  return ends;
}

void must_be_numbers(std::span<const float> logits) {
  if (std::ranges::none_of(logits, [](float x) { return std::isnan(x); })) return;
  fail(Kind::data,
       "generate: what the model says of the next word is no number (NaN): its weights hold some ",
       "that are not finite, or are too large for the precision");
}

}  // namespace

void check_known(std::span<const std::int32_t> ids, const ModelConfig& config) {
  for (const std::int32_t id : ids)
    if (id < 0 || id >= config.vocabulary)
      fail(Kind::usage, "generate: the prompt has token ", id, ", and the model knows ", config.vocabulary,
           "; is it the model's tokenizer");
}

// A decoder's text begins with its start, so there is no window on it: it ends where its places do.
std::string continue_text(const Speaker& speaker, const Wish& wish,
                          const std::function<void(const std::string&)>& tell) {
  check(wish.choice);
  Beginning beginning = beginning_of(speaker, wish);
  std::vector<std::int32_t>& ids = beginning.ids;
  const std::vector<std::int32_t>& source = beginning.source;
  const ModelConfig& config = speaker.model.config;
  const std::size_t prompt = ids.size();
  const auto window = std::size_t(source.empty() ? config.sequence : config.decoder_sequence);
  const auto words = std::size_t(std::min<std::int64_t>(speaker.tokenizer.size(), config.vocabulary));
  const std::vector<std::int32_t> ends = ends_of(speaker, wish);
  TextReader reader(speaker.model);
  const Draw draw({.seed = wish.seed, .purpose = Purpose::sample_text});
  Teller teller(tell);
  const auto text = [&] { return speaker.tokenizer.decode(std::span(ids).subspan(prompt)); };
  for (std::int64_t i = 0; i < wish.tokens; ++i) {
    const std::size_t from = ids.size() > window ? ids.size() - window : 0;
    if (from > 0 && !source.empty()) break;
    auto logits = reader.logits(std::span(ids).subspan(from), 1, source);
    // A model may have rows for ids that its tokenizer does not know.
    const std::span known = std::span(logits).first(words);
    must_be_numbers(known);
    penalize(known, ids, wish.choice.repetition_penalty);
    const std::int32_t token = choose_token(known, wish.choice, draw.uniform(std::uint64_t(i)));
    if (std::ranges::find(ends, token) != ends.end()) break;
    ids.push_back(token);
    if (tell) teller.say(text());
  }
  std::string all = text();
  teller.finish(all);
  return all;
}

}  // namespace weft
