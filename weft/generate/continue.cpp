// One forward a token; the context is cut to what the model was trained to see.
#include "weft/generate/continue.h"

#include <algorithm>
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

}  // namespace

std::string continue_text(const Speaker& speaker, const Wish& wish,
                          const std::function<void(const std::string&)>& tell) {
  check(wish.choice);
  std::vector<std::int32_t> ids = speaker.tokenizer.encode(wish.prompt);
  if (ids.empty()) fail(Kind::usage, "generate: the prompt has no tokens to go on from");
  const ModelConfig& config = speaker.model.config;
  for (const std::int32_t id : ids)
    if (id < 0 || id >= config.vocabulary)
      fail(Kind::usage, "generate: the prompt has token ", id, ", and the model knows ", config.vocabulary,
           "; is it the model's tokenizer");
  const std::size_t prompt = ids.size();
  const auto window = std::size_t(config.sequence);
  const auto words = std::size_t(std::min<std::int64_t>(speaker.tokenizer.size(), config.vocabulary));
  std::vector<std::int32_t> ends = wish.ends;
  if (const auto eod = speaker.tokenizer.special("eod")) ends.push_back(*eod);
  TextReader reader(speaker.model);
  const Draw draw({.seed = wish.seed, .purpose = Purpose::sample_text});
  Teller teller(tell);
  const auto text = [&] { return speaker.tokenizer.decode(std::span(ids).subspan(prompt)); };
  for (std::int64_t i = 0; i < wish.tokens; ++i) {
    const std::size_t from = ids.size() > window ? ids.size() - window : 0;
    const auto logits = reader.logits(std::span(ids).subspan(from), 1);
    // A model may have rows for ids that its tokenizer does not know.
    const std::int32_t token =
        choose_token(std::span(logits).first(words), wish.choice, draw.uniform(std::uint64_t(i)));
    if (std::ranges::find(ends, token) != ends.end()) break;
    ids.push_back(token);
    if (tell) teller.say(text());
  }
  std::string all = text();
  teller.finish(all);
  return all;
}

}  // namespace weft
