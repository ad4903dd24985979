// What a step of a BERT costs: arithmetic on shapes.
#include <algorithm>

#include "weft/model/bert/bert.h"
#include "weft/model/gpt/gpt.h"

namespace weft {

// Beside a decoder's: the other half of attention, as every token sees all others, and the transform before
// the words' logits, which are those of guesses only. The heads of the first position are not worth a term.
double bert_training_flops(const ModelConfig& c, std::int64_t sequence) {
  const double tokens = double(sequence), h = double(c.hidden), q = double(c.heads * c.channels);
  const std::int64_t no_guesses =
      c.most_guesses > 0 ? std::max<std::int64_t>(sequence - c.most_guesses, 0) : 0;
  return gpt_training_flops(c, sequence) + 6 * tokens * tokens * q * c.layers + 6 * tokens * h * h -
         6 * double(no_guesses) * h * double(c.vocabulary);
}

double bert_activation_bound(const ModelConfig& c, std::int64_t micro_batch) {
  const double transform = 8.0 * double(c.sequence * micro_batch * c.hidden);
  return gpt_activation_bound(c, micro_batch) + transform;
}

}  // namespace weft
