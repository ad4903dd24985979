// Samples for BERT (hidden words, order of two parts) and T5 (hidden spans).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/data/array.h"
#include "weft/data/dataset.h"
#include "weft/data/masking.h"
#include "weft/data/source.h"
#include "weft/text/tokenizer.h"

namespace weft::data {

enum class MaskedModel { bert, t5 };

/// What a run asks of masked samples.
struct MaskedRules {
  MaskedModel model = MaskedModel::bert;
  std::int64_t sequence_length = 0;
  std::int64_t decoder_length = 0;  // T5
  bool sentence_order = true;       // BERT's second task; --bert-no-binary-head turns it off
  double short_probability = 0.1;
  std::uint32_t seed = 1234;
  MaskingRules masking;  // {.max_ngram = 3} for BERT, {.max_ngram = 10, .geometric = true} for T5

  /// Tokens of a sample without what the model puts around them.
  std::int64_t max_length() const { return sequence_length - (model == MaskedModel::bert ? 3 : 2); }
  int min_sentences() const { return model == MaskedModel::bert && sentence_order ? 2 : 1; }
};
MaskingRules usual_masking(MaskedModel model);

/// The special tokens and word pieces of a tokenizer; refuses one that lacks what the model needs.
MaskedVocabulary masked_vocabulary(const Tokenizer& tokenizer, MaskedModel model);

class MaskedDataset : public Dataset {
 public:
  MaskedDataset(std::shared_ptr<const Source> text, Array<std::uint32_t> mapping, MaskedRules rules,
                MaskedVocabulary vocabulary);
  std::int64_t size() const override { return static_cast<std::int64_t>(mapping_.size() / 3); }
  void fill(std::int64_t i, Sample& into) const override;
  std::vector<Origin> origins(std::int64_t i) const override;

 private:
  struct Row {
    std::int64_t begin, end, target;
  };
  Row row(std::int64_t i) const;
  std::vector<std::vector<std::int32_t>> sentences(const Row& row) const;
  Sample bert(const Row& row, NumpyRandom random) const;
  Sample t5(const Row& row, NumpyRandom random) const;

  std::shared_ptr<const Source> text_;
  Array<std::uint32_t> mapping_;
  MaskedRules rules_;
  MaskedVocabulary vocabulary_;
};

}  // namespace weft::data
