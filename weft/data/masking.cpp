// Masking. The order of draws is the original's: the length of an n-gram before it is known whether it may be
// hidden.
#include "weft/data/masking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "weft/data/blend.h"

namespace weft::data {
namespace {

using Positions = std::vector<std::int32_t>;

// Words, each by the places of its tokens.
std::vector<Positions> words_in(const std::vector<std::int32_t>& tokens, const MaskedVocabulary& v,
                                bool whole_words) {
  std::vector<Positions> words;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int32_t token = tokens[i];
    if (token == v.cls || token == v.sep) continue;
    const auto id = static_cast<std::size_t>(token);
    const bool goes_on = whole_words && id < v.continues.size() && v.continues[id] != 0;
    if (goes_on && !words.empty()) {
      words.back().push_back(static_cast<std::int32_t>(i));
    } else {
      words.push_back({static_cast<std::int32_t>(i)});
    }
  }
  return words;
}

constexpr double last_word = 0.2;  // the chance that an n-gram of the geometric kind ends with this word

std::vector<double> ngram_probabilities(const MaskingRules& rules) {
  std::vector<double> p;
  for (int n = 1; n <= rules.max_ngram; ++n) p.push_back(1.0 / n);
  p = normalized(p);
  if (rules.longer_ngrams) std::reverse(p.begin(), p.end());
  return normalized(p);
}

std::vector<double> geometric_probabilities(const MaskingRules& rules) {
  std::vector<double> p;
  double longer = 1;
  for (int n = 1; n < rules.max_ngram; ++n, longer *= 1 - last_word) p.push_back(longer * last_word);
  p.push_back(longer);
  return p;
}

// How long the spans are that are hidden, not those that are drawn: one that meets another is dropped, and
// the longer it is, the likelier. Each word beyond the first is taken for hidden as often as words ever are,
// which drops long ones more often than it happens.
std::vector<double> span_probabilities(const MaskingRules& rules) {
  std::vector<double> p = rules.geometric ? geometric_probabilities(rules) : ngram_probabilities(rules);
  double free = 1;
  for (double& chance : p) {
    chance *= free;
    free *= 1 - rules.probability;
  }
  return normalized(p);
}

class Masker {
 public:
  Masker(const MaskedVocabulary& vocabulary, const MaskingRules& rules, Replacement replacement,
         NumpyRandom& random)
      : vocabulary_(vocabulary),
        rules_(rules),
        replacement_(replacement),
        random_(random),
        chances_(ngram_probabilities(rules)) {}

  Masked run(std::vector<std::int32_t> tokens, std::int64_t target) {
    const double share = static_cast<double>(tokens.size()) * rules_.probability;
    limit_ = std::min(rules_.probability * static_cast<double>(target), std::max(1.0, std::nearbyint(share)));
    words_ = words_in(tokens, vocabulary_, rules_.whole_words);
    hidden_.assign(tokens.size(), false);
    out_.tokens = std::move(tokens);
    std::vector<std::size_t> starts(words_.size());
    for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = i;
    random_.shuffle(std::span(starts));
    for (const std::size_t start : starts) {
      if (static_cast<double>(out_.hidden.size()) >= limit_) break;
      hide(choose(start));
    }
    random_.skip_shuffle(
        starts.size());  // the original shuffles once more, for a permutation that weft does not do
    std::sort(out_.hidden.begin(), out_.hidden.end(),
              [](const auto& a, const auto& b) { return a.position < b.position; });
    std::sort(out_.spans.begin(), out_.spans.end());
    return std::move(out_);
  }

 private:
  Positions ngram(std::size_t start, std::int64_t n) const {
    Positions all;
    const std::size_t end = std::min(words_.size(), start + static_cast<std::size_t>(n));
    for (std::size_t w = start; w < end; ++w) all.insert(all.end(), words_[w].begin(), words_[w].end());
    return all;
  }

  // The n-gram drawn for a start, shortened until it fits; nothing where not even one word does.
  Positions choose(std::size_t start) {
    std::int64_t n = rules_.geometric ? std::min<std::int64_t>(random_.geometric(last_word), rules_.max_ngram)
                                      : static_cast<std::int64_t>(random_.choice(chances_)) + 1;
    for (; n > 0; --n) {
      Positions positions = ngram(start, n);
      if (limit_ >= static_cast<double>(out_.hidden.size() + positions.size())) return positions;
    }
    return {};
  }

  void hide(Positions positions) {
    if (positions.empty()) return;
    const auto taken = [&](std::int32_t p) { return hidden_[static_cast<std::size_t>(p)]; };
    if (std::any_of(positions.begin(), positions.end(), taken)) return;
    for (const std::int32_t p : positions) {
      std::int32_t& token = out_.tokens[static_cast<std::size_t>(p)];
      out_.hidden.push_back({p, token});
      token = replacement(token);
      hidden_[static_cast<std::size_t>(p)] = true;
    }
    out_.spans.push_back(std::move(positions));
  }

  std::int32_t replacement(std::int32_t token) {
    if (replacement_ == Replacement::t5) return vocabulary_.mask;
    if (random_.uniform() < 0.8) return vocabulary_.mask;
    if (random_.uniform() >= 0.5) return static_cast<std::int32_t>(random_.randint(0, vocabulary_.size));
    return token;
  }

  const MaskedVocabulary& vocabulary_;
  const MaskingRules& rules_;
  Replacement replacement_;
  NumpyRandom& random_;
  std::vector<double> chances_;
  double limit_ = 0;
  std::vector<Positions> words_;
  std::vector<bool> hidden_;
  Masked out_;
};

}  // namespace

Masked mask_tokens(std::vector<std::int32_t> tokens, std::int64_t target, const Masking& how,
                   NumpyRandom& random) {
  return Masker(how.vocabulary, how.rules, how.replacement, random).run(std::move(tokens), target);
}

std::int64_t most_hidden(std::int64_t target, const MaskingRules& rules) {
  return static_cast<std::int64_t>(rules.probability * static_cast<double>(target));
}

// hides[t]: the chance that so many spans hide t tokens. Words of several tokens only make spans fewer.
std::int64_t most_spans(std::int64_t target, const MaskingRules& rules) {
  const auto limit = static_cast<std::size_t>(rules.probability * static_cast<double>(target));
  const std::vector<double> lengths = span_probabilities(rules);
  std::vector<double> hides(limit, 0);
  if (limit > 0) hides[0] = 1;
  for (std::int64_t spans = 0;; ++spans) {
    if (std::accumulate(hides.begin(), hides.end(), 0.0) < 1e-12) return spans;
    std::vector<double> with_another(limit, 0);
    for (std::size_t t = 0; t < limit; ++t)
      for (std::size_t n = 1; n <= lengths.size() && t + n < limit; ++n)
        with_another[t + n] += hides[t] * lengths[n - 1];
    hides = std::move(with_another);
  }
}

}  // namespace weft::data
