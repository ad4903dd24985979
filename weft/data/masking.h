// Hiding words of a text for BERT and T5 to guess, draw by draw as Megatron does it.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/data/numpy_random.h"

namespace weft::data {

/// What the masked data sets must know of a tokenizer.
struct MaskedVocabulary {
  std::int32_t cls = -1, sep = -1, mask = -1, pad = -1, bos = -1, eos = -1;
  std::int64_t size = 0;
  std::vector<std::uint8_t> continues;  // by id: 1 where the token goes on with a word ("##…")
  std::vector<std::int32_t> sentinels;  // T5's <extra_id_0>, …
};

struct MaskingRules {
  double probability = 0.15;
  int max_ngram = 3;
  bool whole_words = true;
  bool longer_ngrams = false;  // the longest most often instead of the shortest
  bool geometric = false;      // n is drawn from a geometric distribution
};

/// What stands in a masked place. BERT: the mask token mostly, else any token or the same one. T5: always the
/// mask token, without a draw.
enum class Replacement { bert, t5 };

struct Masked {
  std::vector<std::int32_t> tokens;
  struct Hidden {
    std::int32_t position, original;
  };
  std::vector<Hidden> hidden;                    // by position
  std::vector<std::vector<std::int32_t>> spans;  // positions that were hidden together, by the first
};

struct Masking {
  const MaskedVocabulary& vocabulary;
  const MaskingRules& rules;
  Replacement replacement;
};
/// `target` is the length the sample was cut for, which bounds how much is hidden.
Masked mask_tokens(std::vector<std::int32_t> tokens, std::int64_t target, const Masking& how,
                   NumpyRandom& random);

/// How many tokens a text of `target` tokens may lose.
std::int64_t most_hidden(std::int64_t target, const MaskingRules& rules);

/// How many spans a text of `target` tokens may lose: one in 10^12 loses more.
std::int64_t most_spans(std::int64_t target, const MaskingRules& rules);

}  // namespace weft::data
