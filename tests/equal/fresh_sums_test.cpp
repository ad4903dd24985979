// What the step before left in gradients is nothing to the next one, though nobody zeroes it.
#include <gtest/gtest.h>

#include "tests/equal/same_bits.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

void spoil_gradients_of(const ModelConfig& config, Cut cut, const std::string& what) {
  cut.steps = rounds(3);
  const Curve plain = train(config, cut);
  cut.spoils_gradients = true;
  expect_same_bits(train(config, cut), plain, what + " " + name_of(cut));
}

}  // namespace

class FreshSums : public ::testing::TestWithParam<const char*> {};

TEST_P(FreshSums, know_nothing_of_the_step_before) {
  const ModelConfig config = shape_of(GetParam());
  const std::vector<Cut> cuts = {{{.dp = 1}, 1},
                                 {{.tp = 2, .dp = 1, .sequence = true}},
                                 {{.pp = 2, .dp = 1}},
                                 {{.dp = 2, .zero = 1, .overlap_reduce = true, .bucket_elements = 600}, 1},
                                 {{.dp = 2, .zero = 2}, 1},
                                 {{.dp = 2, .zero = 3, .reduce_once = true}, 1}};
  for (const Cut& cut : cuts) spoil_gradients_of(config, cut, GetParam());
}

TEST_P(FreshSums, of_exact_mode_and_of_fewer_bits_know_nothing_either) {
  ModelConfig config = shape_of(GetParam());
  Cut exact{.parallel = {.dp = 2}, .micro_batch = 1};
  exact.exact = true;
  spoil_gradients_of(config, exact, GetParam());
  config.precision = Precision::bf16;
  Cut narrow{.parallel = {.dp = 2}, .micro_batch = 2};
  spoil_gradients_of(config, narrow, GetParam());
  narrow.sum_in_bf16 = true;
  spoil_gradients_of(config, narrow, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Families, FreshSums,
                         ::testing::Values("gpt2", "llama", "latent", "mixture", "bert", "t5"),
                         [](const auto& family) { return family.param; });

// Rows that ranks of a sequence share out are a part of a matrix each.
TEST(FreshSumsOfParts, know_nothing_of_the_step_before) {
  for (const char* name : {"gpt2", "mixture"})
    for (const bool exact : {false, true}) {
      Cut cut{.parallel = {.cp = 2, .dp = 1}, .micro_batch = 2};
      cut.exact = exact;
      spoil_gradients_of(shape_of(name), cut, name);
    }
}

// Who has no rows for an expert leaves its sum as zeros, and not as it was.
TEST(FreshSumsOfExperts, know_nothing_where_an_expert_has_no_rows) {
  for (const bool eight_bits : {false, true}) {
    ModelConfig config = shape_of("mixture");
    if (eight_bits) config.fp8 = {.format = Fp8Format::hybrid, .recipe = Fp8Recipe::tensorwise};
    Cut cut{.parallel = {.dp = 1}, .micro_batch = 2};
    cut.always = {0, 1};
    spoil_gradients_of(config, cut, "mixture");
  }
}
