// Caps of scores and logits, chunks that see themselves alone, queries that grow and scores that fall with
// distances, under every kind of cut; in models as Gemma 2, Llama 4 and BLOOM are built.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr const char* models[] = {"capped", "chunks", "grown", "falling"};

/// Among them all four ways in which ranks share a sequence, whose parts begin and end within chunks.
std::vector<Cut> cuts() {
  return {{{.cp = 2, .dp = 1}},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1},
          {{.cp = 4, .dp = 1, .context = ContextForm::gather}},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1, .context = ContextForm::heads}},
          {{.cp = 4, .dp = 1, .context = ContextForm::two_levels, .context_levels = {2, 2}}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1}};
}

/// Of these some, where a sanitizer waits.
std::vector<Cut> some_cuts() { return some_of(cuts(), 4); }

}  // namespace

TEST(Scores, train_as_on_one_rank) {
  for (const char* name : models) expect_steps_of_one_rank(shape_of(name, 4), some_cuts());
}

TEST(Scores, have_the_bits_of_one_rank_in_exact_mode) {
  for (const char* name : models) expect_bits_of_one_rank(shape_of(name, 4), some_cuts());
}

TEST(Scores, are_those_that_were_asked_for) {
  ModelConfig capped = shape_of("capped", 4), chunks = shape_of("chunks", 4);
  std::vector<std::vector<double>> losses{alone(capped).losses, alone(chunks).losses};
  capped.scores.cap = 0;
  losses.push_back(alone(capped).losses);
  capped.output_cap = 0;
  losses.push_back(alone(capped).losses);
  chunks.scores.chunk = 0;
  losses.push_back(alone(chunks).losses);
  chunks.scores.growth_of = QueryGrowth::all;
  losses.push_back(alone(chunks).losses);
  chunks.scores.growth_every = 0;
  losses.push_back(alone(chunks).losses);
  ModelConfig falling = shape_of("falling", 4);
  losses.push_back(alone(falling).losses);
  falling.alibi.scaled = false;
  losses.push_back(alone(falling).losses);
  falling.alibi.power = 8;
  losses.push_back(alone(falling).losses);
  falling.embedding_norm = false;
  losses.push_back(alone(falling).losses);
  expect_all_differ(losses);
}

TEST(Scores, hold_what_the_counting_device_counts) {
  for (const char* name : models) expect_counted_memory(shape_of(name, 4), {cuts()[1], cuts()[2], cuts()[4]});
}
