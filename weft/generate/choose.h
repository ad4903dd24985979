// The next token out of logits: pure.
#pragma once

#include <cstdint>
#include <span>

namespace weft {

/// Greedy where temperature is 0; else the temperature divides the logits, then only the top_k likeliest (0:
/// all) and of these the fewest whose probabilities sum to top_p (0 or 1: all) may be drawn.
struct Choice {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 0;
  double repetition_penalty = 1;  // what was said is the less likely the larger this is
};

/// Logits of words that the text has already: divided by the penalty where they are greater than 0, else
/// multiplied by it, as transformers does. Each once, however often it was said.
void penalize(std::span<float> logits, std::span<const std::int32_t> said, double penalty);

/// uniform in [0, 1) decides the draw; ties go to the lower id. Refuses settings that choose from nothing.
std::int32_t choose_token(std::span<const float> logits, const Choice& choice, double uniform);
void check(const Choice& choice);

}  // namespace weft
