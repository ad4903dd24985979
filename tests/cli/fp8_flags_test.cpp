// Megatron's flags of eight bits: what they set, and what is refused of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "weft/cli/dialect.h"
#include "weft/model/kinds.h"

using namespace weft;
using namespace weft::cli;

namespace {

std::unique_ptr<Command> read(std::vector<std::string_view> words) { return read_command(words); }

TEST(Fp8Flags, set_what_megatrons_do) {
  const Fp8Config none = read({"--bf16"})->config.model.fp8;
  EXPECT_FALSE(none.on());
  EXPECT_EQ(none.recipe, Fp8Recipe::delayed);
  EXPECT_EQ(none.history, 1);
  EXPECT_EQ(none.amax, AmaxChoice::most_recent);
  const Fp8Config f = read({"--bf16", "--fp8-format", "hybrid", "--fp8-margin", "1", "--fp8-amax-history-len",
                            "1024", "--fp8-amax-compute-algo", "max", "--no-fp8-wgrad"})
                          ->config.model.fp8;
  EXPECT_EQ(f.format, Fp8Format::hybrid);
  EXPECT_TRUE(f.delayed());
  EXPECT_EQ(f.margin, 1);
  EXPECT_EQ(f.history, 1024);
  EXPECT_EQ(f.amax, AmaxChoice::max);
  EXPECT_FALSE(f.weight_grads);
  const Fp8Config ends =
      read({"--fp8-format", "e4m3", "--fp8-recipe", "tensorwise", "--first-last-layers-bf16",
            "--num-layers-at-start-in-bf16", "2", "--num-layers-at-end-in-bf16", "0"})
          ->config.model.fp8;
  EXPECT_EQ(ends.format, Fp8Format::e4m3);
  EXPECT_FALSE(ends.delayed());
  EXPECT_TRUE(ends.ends_in_bf16);
  EXPECT_EQ(ends.first_layers, 2);
  EXPECT_EQ(ends.last_layers, 0);
}

TEST(Fp8Flags, name_recipes_by_blocks) {
  const auto recipe = [](std::string_view word) {
    return read({"--fp8-format", "e4m3", "--fp8-recipe", word, "--first-last-layers-bf16"})
        ->config.model.fp8.recipe;
  };
  EXPECT_EQ(recipe("blockwise"), Fp8Recipe::blockwise);
  EXPECT_EQ(recipe("mxfp8"), Fp8Recipe::mxfp8);
}

TEST(Fp8Flags, of_other_recipes_are_refused_by_name) {
  EXPECT_EQ(weft::refused([&] {
              read({"--fp8-format", "hybrid", "--fp8-recipe", "custom"});
            }),
            "weft cannot do this yet: a quantizer written in Python: --fp8-recipe");
}

TEST(Fp8Flags, that_do_not_go_together_are_refused) {
  const auto said = [](auto change) {
    ModelConfig c;
    c.layers = 2;
    c.hidden = c.sequence = 16;
    c.heads = 2;
    c.vocabulary = 29;
    c.fp8.format = Fp8Format::hybrid;
    change(c);
    return weft::refused([&] { complete(c); });
  };
  EXPECT_EQ(
      said([](ModelConfig& c) { c.exact = true; }),
      "model: products of {model.fp8.format} are sums of no fixed order, so their bits depend on the layout: "
      "leave it or {model.exact} out");
  EXPECT_EQ(
      said([](ModelConfig& c) { c.fp8.ends_in_bf16 = true; }),
      "model: {model.fp8.ends_in_bf16} is, as in Megatron-LM, not for delayed scales: add {model.fp8.recipe} "
      "tensorwise, blockwise or mxfp8");
  EXPECT_EQ(said([](ModelConfig& c) {
              c.fp8.recipe = Fp8Recipe::tensorwise;
              c.fp8.ends_in_bf16 = true;
              c.fp8.first_layers = 2;
            }),
            "model: {model.fp8.first_layers} 2 and {model.fp8.last_layers} 1 are more than the 2 layers of a "
            "stack");
}

}  // namespace
