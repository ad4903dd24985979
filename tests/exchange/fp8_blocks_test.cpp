// Weights in eight bits, a scale for each rectangle, as DeepSeek V3 is published.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exchange/changed.h"
#include "weft/exchange/fp8_blocks.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;

namespace {

/// The oracle: a sign, four bits of exponent, three of mantissa, by the format's own words.
double number_of(unsigned code) {
  const unsigned exponent = code / 8 % 16, mantissa = code % 8;
  if (exponent == 15 && mantissa == 7) return NAN;
  const double size =
      exponent == 0 ? mantissa * std::pow(2.0, -9) : (8 + mantissa) * std::pow(2.0, int(exponent) - 10);
  return code < 128 ? size : -size;
}

json in_blocks(json size) {
  return {{"quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", std::move(size)}}}};
}

}  // namespace

TEST(EightBits, are_numbers_times_the_scale_of_their_block) {
  std::vector<std::byte> codes;
  for (int code = 0; code < 256; ++code) codes.push_back(std::byte(code));
  std::vector<float> scales;
  for (int block = 0; block < 26; ++block) scales.push_back(0.3F + float(block));
  for (const std::size_t column : {0U, 9U, 10U, 137U}) {
    std::vector<float> found(256 - column);
    unpack_codes({codes, scales}, std::int64_t(column), 10, found);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto expected = float(number_of(unsigned(column + i))) * scales[(column + i) / 10];
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(found[i]));
      else
        EXPECT_EQ(found[i], expected) << column + i;
    }
  }
}

TEST(EightBits, blocks_are_what_a_file_says) {
  const auto blocks = [](const json& changes) {
    json object = settings_of("llama2");
    object.update(changes);
    return hub_config_from_json(object.dump(), "c").blocks;
  };
  EXPECT_EQ(blocks(json::object()), std::nullopt);
  EXPECT_EQ(blocks(in_blocks({6, 10})), (CodeBlocks{6, 10}));
  EXPECT_EQ(blocks({{"quantization_config", {{"quant_method", "fp8"}}}}), (CodeBlocks{128, 128}));
  EXPECT_EQ((CodeBlocks{6, 10}.scales_of({13, 20})), (Shape{3, 2}));
}

TEST(EightBits, of_another_scheme_are_refused_by_name) {
  EXPECT_EQ(
      said("llama2", {{"quantization_config", {{"quant_method", "compressed-tensors"}}}}),
      "c: \"quantization_config\" is {\"quant_method\":\"compressed-tensors\"}, weft reads fp8 in blocks, "
      "and mxfp4 of a gpt_oss");
  EXPECT_EQ(
      said("llama2", in_blocks(json())),
      "c: quantization_config: \"weight_block_size\" is missing, and weft reads scales of blocks, none of "
      "whole tensors");
  EXPECT_EQ(said("llama2", in_blocks({128, 0})),
            "c: quantization_config: \"weight_block_size\" is [128,0], expected two numbers from 1 to 65535");
  EXPECT_EQ(said("llama2", {{"quantization_config", {{"quant_method", "fp8"}, {"fmt", "e5m2"}}}}),
            "c: quantization_config: \"fmt\" is \"e5m2\", weft can only compute \"e4m3\"");
}

TEST(EightBits, whose_scales_do_not_fit_are_named) {
  const std::string weight = "model.layers.1.self_attn.o_proj.weight";
  EXPECT_EQ(said_without("deepseek_v3_coded", weight + "_scale_inv"),
            "lacks " + weight + "_scale_inv, by which " + weight + " is scaled");
  EXPECT_EQ(said_without("deepseek_v3_coded", weight + "_scale_inv", weight + "_scale_inv"),
            weight + "_scale_inv is [4] of f32, expected [3, 4] of f32, bf16 or f16: one for 6 x 10");
}

TEST(EightBits, need_a_file_that_tells_of_them) {
  const support::TemporaryDirectory folder;
  std::filesystem::copy(hub_model("deepseek_v3_coded"), folder / "m");
  json settings = settings_of("deepseek_v3_coded");
  settings.erase("quantization_config");
  std::filesystem::permissions(folder / "m/config.json", std::filesystem::perms::owner_all);
  std::ofstream(folder / "m/config.json") << settings.dump();
  const std::string words = refused([&] { (void)HubWeights(folder / "m", read_hub_config(folder / "m")); });
  EXPECT_NE(words.find(" is of f8e4m3, expected f32, bf16 or f16"), std::string::npos) << words;
}
