// Sorting once serves top-k and top-p alike.
#include "weft/generate/choose.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "weft/base/error.h"

namespace weft {
namespace {

/// Ids by falling logit.
std::vector<std::int32_t> ranked(std::span<const float> logits) {
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[std::size_t(a)] > logits[std::size_t(b)];
  });
  return ids;
}

}  // namespace

void check(const Choice& choice) {
  if (!(choice.temperature >= 0) || std::isinf(choice.temperature))
    fail(Kind::usage, "generate: temperature ", choice.temperature, " is not 0 or more");
  if (choice.top_k < 0) fail(Kind::usage, "generate: top-k ", choice.top_k, " is not 0 or more");
  if (!(choice.top_p >= 0 && choice.top_p <= 1))
    fail(Kind::usage, "generate: top-p ", choice.top_p, " is not between 0 and 1");
  if (!(choice.repetition_penalty > 0) || std::isinf(choice.repetition_penalty))
    fail(Kind::usage, "generate: repetition penalty ", choice.repetition_penalty, " is not greater than 0");
}

void penalize(std::span<float> logits, std::span<const std::int32_t> said, double penalty) {
  if (penalty == 1) return;
  std::vector<std::int32_t> words(said.begin(), said.end());
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  const auto factor = float(penalty);
  for (const std::int32_t word : words) {
    if (std::size_t(word) >= logits.size()) continue;
    float& logit = logits[std::size_t(word)];
    logit = logit > 0 ? logit / factor : logit * factor;
  }
}

std::int32_t choose_token(std::span<const float> logits, const Choice& choice, double uniform) {
  check(choice);
  if (logits.empty()) fail(Kind::internal, "generate: there are no logits to choose from");
  if (choice.temperature == 0) return std::int32_t(std::ranges::max_element(logits) - logits.begin());
  std::vector<std::int32_t> ids = ranked(logits);
  if (choice.top_k > 0) ids.resize(std::min(ids.size(), std::size_t(choice.top_k)));
  const double greatest = logits[std::size_t(ids.front())];
  std::vector<double> mass;  // running sums of what is not yet divided by the whole
  double sum = 0;
  for (const std::int32_t id : ids)
    mass.push_back(sum += std::exp((logits[std::size_t(id)] - greatest) / choice.temperature));
  if (choice.top_p > 0 && choice.top_p < 1) {
    const auto last = std::ranges::lower_bound(mass, choice.top_p * sum);
    mass.resize(std::size_t(last - mass.begin()) + 1);
    sum = mass.back();
  }
  const auto drawn = std::ranges::upper_bound(mass, uniform * sum);
  return ids[std::min(std::size_t(drawn - mass.begin()), mass.size() - 1)];
}

}  // namespace weft
