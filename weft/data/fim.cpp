// Cutting, permuting, and filling up to the length that a sample had.
#include "weft/data/fim.h"

#include <algorithm>
#include <span>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/random.h"

namespace weft::data {
namespace {

using Ids = std::vector<std::int32_t>;

/// The choices of one sample, one after the other.
class Choices {
 public:
  Choices(std::uint64_t seed, std::int64_t sample)
      : draw_({.seed = seed, .purpose = Purpose::masking, .sample = std::uint64_t(sample)}) {}
  bool happens(double probability) { return draw_.uniform(next_++) < float(probability); }
  /// From 0 to `most`.
  std::size_t up_to(std::size_t most) { return draw_.word(next_++) % (most + 1); }

 private:
  Draw draw_;
  std::uint64_t next_ = 0;
};

/// Where the n-th character of UTF-8 begins.
std::size_t byte_of(std::string_view utf8, std::size_t n) {
  std::size_t at = 0;
  for (; at < utf8.size(); ++at)
    if ((static_cast<unsigned char>(utf8[at]) & 0xC0U) != 0x80U && n-- == 0) break;
  return at;
}

std::size_t characters(std::string_view utf8) {
  return std::size_t(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

class FilledInTheMiddle final : public Dataset {
 public:
  FilledInTheMiddle(std::shared_ptr<const Dataset> of, std::shared_ptr<const Tokenizer> tokenizer,
                    const FimRules& rules, const GptRows& rows)
      : of_(std::move(of)), tokenizer_(std::move(tokenizer)), rules_(rules), rows_(rows) {}

  std::int64_t size() const override { return of_->size(); }
  std::vector<Origin> origins(std::int64_t i) const override { return of_->origins(i); }

  void fill(std::int64_t i, Sample& into) const override {
    of_->fill(i, into);
    Ids tokens = into[Field::tokens];
    tokens.push_back(into[Field::labels].back());
    Choices choices(rules_.seed, i);
    Ids permuted = by_document(tokens, choices);
    permuted.resize(tokens.size(), rules_.pad);
    if (!rows_.extra_token) permuted.pop_back();
    for (const Field field : {Field::labels, Field::loss_mask, Field::positions, Field::documents})
      into[field].clear();
    into[Field::tokens] = std::move(permuted);
    complete_gpt_sample(into, rows_);
  }

 private:
  Ids by_document(std::span<const std::int32_t> tokens, Choices& choices) const {
    return between(tokens, rules_.eod,
                   [&](std::span<const std::int32_t> document) { return by_fragment(document, choices); });
  }

  Ids by_fragment(std::span<const std::int32_t> document, Choices& choices) const {
    const bool one = !rules_.split || std::ranges::find(document, *rules_.split) == document.end();
    if (one) return permuted(document, rules_.rate, choices);
    if (!choices.happens(rules_.rate)) return {document.begin(), document.end()};
    return between(document, *rules_.split, [&](std::span<const std::int32_t> fragment) {
      return permuted(fragment, rules_.fragment_rate, choices);
    });
  }

  /// What stands between marks goes through `act`; empty runs go with the mark behind them.
  template <class Act>
  static Ids between(std::span<const std::int32_t> tokens, std::int32_t mark, const Act& act) {
    Ids out;
    std::size_t from = 0;
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      if (tokens[at] != mark) continue;
      if (at > from) {
        const Ids part = act(tokens.subspan(from, at - from));
        out.insert(out.end(), part.begin(), part.end());
        out.push_back(mark);
      }
      from = at + 1;
    }
    const Ids rest = act(tokens.subspan(from));
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }

  Ids permuted(std::span<const std::int32_t> part, double rate, Choices& choices) const {
    Ids plain(part.begin(), part.end());
    if (!choices.happens(rate)) return plain;
    Ids words;
    for (const std::int32_t id : part)
      if (!tokenizer_->is_special(id)) words.push_back(id);
    const std::string text = tokenizer_->decode(words);
    if (!rules_.spared.empty() && text.starts_with(rules_.spared)) return plain;
    const std::size_t length = characters(text), one = choices.up_to(length), other = choices.up_to(length);
    const std::size_t first = byte_of(text, std::min(one, other)),
                      second = byte_of(text, std::max(one, other));
    const std::string_view whole = text;
    const Ids prefix = tokenizer_->encode(whole.substr(0, first)),
              middle = tokenizer_->encode(whole.substr(first, second - first)),
              suffix = tokenizer_->encode(whole.substr(second));
    if (choices.happens(rules_.suffix_first_rate))
      return joined({{rules_.prefix, rules_.suffix}, suffix, {rules_.middle}, prefix, middle});
    return joined({{rules_.prefix}, prefix, {rules_.suffix}, suffix, {rules_.middle}, middle});
  }

  static Ids joined(std::initializer_list<Ids> parts) {
    Ids out;
    for (const Ids& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
  }

  std::shared_ptr<const Dataset> of_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  FimRules rules_;
  GptRows rows_;
};

}  // namespace

std::shared_ptr<const Dataset> filled_in_the_middle(std::shared_ptr<const Dataset> of,
                                                    std::shared_ptr<const Tokenizer> tokenizer,
                                                    const FimRules& rules, const GptRows& rows) {
  if (rows.between_documents)
    fail(Kind::usage, "{data.fim.on} makes other pieces of documents than {data.between_documents} counts: ",
         "leave one of them out");
  return std::make_shared<FilledInTheMiddle>(std::move(of), std::move(tokenizer), rules, rows);
}

}  // namespace weft::data
