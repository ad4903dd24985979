// Sentences that nobody wrote, for BERT and T5 where no data are at hand.
#pragma once

#include <memory>
#include <vector>

#include "weft/data/masking.h"
#include "weft/data/source.h"

namespace weft::data {

/// The special tokens of a bare vocabulary, as mock data uses them: padding, [CLS], [SEP] and [MASK] are its
/// first ids, T5's sentinels its last ones: so many, but at most half of the others.
MaskedVocabulary bare_vocabulary(std::int64_t size, std::int64_t sentinels = 100);

/// Documents of four to sixteen sentences, each of which counts its words on from a word of its own.
class MadeUpSentences final : public Source {
 public:
  /// Sentences are a quarter of `target` at most, so that samples hold several.
  MadeUpSentences(const MaskedVocabulary& vocabulary, std::int64_t target);
  const std::string& name() const override { return name_; }
  Packed<std::int32_t> lengths() const override;
  /// The first sentence of each document, and the number of sentences.
  Packed<std::int64_t> documents() const;
  std::int64_t num_documents() const { return std::int64_t(documents_.size()) - 1; }
  std::int64_t length(std::int64_t sentence) const override { return lengths_.at(std::size_t(sentence)); }
  void read(std::int64_t sentence, std::int64_t from, std::span<std::int32_t> to) const override;
  std::int64_t tokens_before(std::int64_t sentence) const override {
    return begins_.at(std::size_t(sentence));
  }

 private:
  std::string name_ = "mock data";
  std::int32_t first_, words_;  // ids that are words
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> begins_, documents_;
};

}  // namespace weft::data
