// One forward; what stands in a hidden place is a softmax over the whole vocabulary.
#include "weft/generate/fill.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/base/error.h"

namespace weft {
namespace {

std::int32_t needed(const Tokenizer& tokenizer, const char* part, const char* name) {
  const auto id = tokenizer.special(part);
  if (!id || *id < 0)
    fail(Kind::usage, "generate: the tokenizer has no ", name, ", which the model was trained with");
  return *id;
}

struct Ends {
  std::int32_t first, last;
};

std::vector<std::int32_t> wrapped(std::vector<std::int32_t> ids, const Ends& ends) {
  if (ids.empty() || ids.front() != ends.first) ids.insert(ids.begin(), ends.first);
  if (ids.back() != ends.last) ids.push_back(ends.last);
  return ids;
}

double log_of_sum(std::span<const float> logits) {
  const double greatest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - greatest);
  return greatest + std::log(sum);
}

/// Ids that the tokenizer does not know take part in the softmax, and are no guesses.
std::vector<Guess> likeliest(std::span<const float> logits, const Tokenizer& tokenizer, std::int64_t count) {
  const auto known = std::min(logits.size(), std::size_t(tokenizer.size()));
  std::vector<std::int32_t> ids(known);
  std::iota(ids.begin(), ids.end(), 0);
  const auto wanted = ids.begin() + std::min(count, std::ssize(ids));
  std::ranges::partial_sort(ids, wanted, [&](std::int32_t a, std::int32_t b) {
    const float left = logits[std::size_t(a)], right = logits[std::size_t(b)];
    return left > right || (left == right && a < b);
  });
  ids.erase(wanted, ids.end());
  const double all = log_of_sum(logits);
  std::vector<Guess> out;
  for (const std::int32_t id : ids)
    out.push_back({id, tokenizer.token(id), std::exp(logits[std::size_t(id)] - all)});
  return out;
}

}  // namespace

Filled fill_hidden(const Speaker& speaker, const std::string& prompt, std::int64_t words) {
  const Tokenizer& tokenizer = speaker.tokenizer;
  const ModelConfig& config = speaker.model.config;
  const std::int32_t mask = needed(tokenizer, "mask", "[MASK]");
  const Ends ends{needed(tokenizer, "cls", "[CLS]"), needed(tokenizer, "sep", "[SEP]")};
  std::vector<std::int32_t> ids = wrapped(tokenizer.encode(prompt), ends);
  check_known(ids, config);
  if (std::ranges::find(ids, mask) == ids.end())
    fail(Kind::usage, "generate: the prompt has no ", tokenizer.token(mask),
         ", and the model guesses hidden words only");
  if (std::ssize(ids) > config.sequence)
    fail(Kind::usage, "generate: the prompt has ", ids.size(), " tokens with ", tokenizer.token(ends.first),
         " and ", tokenizer.token(ends.last), ", and the model reads ", config.sequence, " at most");
  const std::vector<float> logits = TextReader(speaker.model).logits(ids, std::ssize(ids));
  const auto v = std::size_t(config.vocabulary);
  Filled out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != mask) continue;
    out.hidden.push_back(likeliest(std::span(logits).subspan(i * v, v), tokenizer, words));
    ids[i] = out.hidden.back().front().id;
  }
  out.text = tokenizer.decode(std::span(ids).subspan(1, ids.size() - 2));
  return out;
}

}  // namespace weft
