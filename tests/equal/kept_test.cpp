// Inputs of recomputed layers, of which each tensor-parallel rank keeps a part.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"

using namespace weft;
using namespace weft::testing;

namespace {

ModelConfig recomputed(ModelConfig config, RecomputeMethod method, int layers) {
  config.recompute = {.what = Recompute::full, .method = method, .layers = layers, .cut = true};
  return config;
}

std::vector<Cut> cuts() {
  return {{{.tp = 4, .dp = 1}}, {{.tp = 2, .pp = 2, .dp = 2, .schedule = "zb-h1", .zero = 1}, 1}};
}

}  // namespace

TEST(KeptInputs, that_are_cut_change_no_bit) {
  for (const char* name : {"gpt2", "t5", "hybrid"})
    for (Cut cut : cuts()) {
      cut = with_few_steps(cut);
      ModelConfig config = recomputed(shape_of(name, 4), RecomputeMethod::uniform, 2);
      const Curve parts = bits_of(config, cut);
      config.recompute.cut = false;
      EXPECT_EQ(parts, bits_of(config, cut)) << name << " " << name_of(cut);
      config = recomputed(shape_of(name, 4), RecomputeMethod::block, 1);
      config.ahead.depths = config.kind == "gpt" && config.hybrid.layers.empty() ? 1 : 0;
      complete(config);
      const Curve some = bits_of(config, cut);
      config.recompute.cut = false;
      EXPECT_EQ(some, bits_of(config, cut)) << name << " " << name_of(cut);
    }
}

TEST(KeptInputs, that_are_cut_are_those_of_one_rank_in_exact_mode) {
  const ModelConfig config = recomputed(shape_of("llama", 4), RecomputeMethod::uniform, 1);
  const Curve one = alone(config, true);
  for (const Cut& cut : cuts()) expect_same_bits(train(config, with_few_steps(cut, true)), one, name_of(cut));
}

TEST(KeptInputs, that_are_cut_are_counted) {
  for (const char* name : {"gpt2", "t5"})
    expect_counted_memory(recomputed(shape_of(name, 4), RecomputeMethod::uniform, 1), cuts());
  // Nothing is cut twice, and one rank has nobody to share with.
  expect_counted_memory(recomputed(shape_of("gpt2", 4), RecomputeMethod::uniform, 1),
                        {{{.tp = 2, .dp = 1, .sequence = true}}, {{.dp = 1}}});
}
