// Every number is drawn at an address, so all ranks and all runs read the same.
#include "weft/data/made_up.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/random.h"

namespace weft::data {
namespace {

constexpr std::int64_t most_documents = 20'000;
constexpr std::int64_t longest = 512;  // as long as a sentence of real data may be
constexpr std::int32_t specials = 4;

Draw drawn(std::uint64_t of) { return Draw({.purpose = Purpose::data, .sample = of}); }

}  // namespace

MaskedVocabulary bare_vocabulary(std::int64_t size, std::int64_t sentinels) {
  if (size < 2 * specials)
    fail(Kind::usage, "{data.mock}: a vocabulary of ", size, " tokens, expected at least ", 2 * specials);
  MaskedVocabulary v{.cls = 1,
                     .sep = 2,
                     .mask = 3,
                     .pad = 0,
                     .bos = 1,
                     .eos = 2,
                     .size = size,
                     .continues = std::vector<std::uint8_t>(std::size_t(size), 0),
                     .sentinels = {}};
  sentinels = std::min(sentinels, (size - specials) / 2);
  for (std::int64_t i = size - sentinels; i < size; ++i) v.sentinels.push_back(std::int32_t(i));
  return v;
}

MadeUpSentences::MadeUpSentences(const MaskedVocabulary& vocabulary, std::int64_t target)
    : first_(specials),
      words_(std::int32_t(vocabulary.size) - specials - std::int32_t(vocabulary.sentinels.size())) {
  const auto most = std::uint32_t(std::clamp<std::int64_t>(target / 4, 1, longest));
  const Draw sentences = drawn(0), tokens = drawn(1);
  begins_.push_back(0);
  for (std::int64_t document = 0; document < most_documents; ++document) {
    documents_.push_back(std::int64_t(lengths_.size()));
    const std::uint32_t count = 4 + sentences.word(std::uint64_t(document)) % 13;
    for (std::uint32_t i = 0; i < count; ++i) {
      lengths_.push_back(std::int32_t(1 + tokens.word(lengths_.size()) % most));
      begins_.push_back(begins_.back() + lengths_.back());
    }
  }
  documents_.push_back(std::int64_t(lengths_.size()));
}

Packed<std::int32_t> MadeUpSentences::lengths() const {
  return Packed<std::int32_t>(std::as_bytes(std::span(lengths_)));
}

Packed<std::int64_t> MadeUpSentences::documents() const {
  return Packed<std::int64_t>(std::as_bytes(std::span(documents_)));
}

void MadeUpSentences::read(std::int64_t sentence, std::int64_t from, std::span<std::int32_t> to) const {
  const auto start = std::int64_t(drawn(2).word(std::uint64_t(sentence)) % std::uint32_t(words_));
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = first_ + std::int32_t((start + from + std::int64_t(i)) % words_);
}

}  // namespace weft::data
