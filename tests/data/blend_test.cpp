#include "weft/data/blend.h"

#include <gtest/gtest.h>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"

using namespace weft;
using namespace weft::data;

namespace {

using Words = std::vector<std::string>;

void expect_index(const BlendIndex& index, const Json& expected) {
  const auto datasets = index.datasets.values();
  const auto samples = index.samples.values();
  EXPECT_EQ(std::vector<std::int64_t>(datasets.begin(), datasets.end()),
            expected["dataset_index"].get<std::vector<std::int64_t>>());
  EXPECT_EQ(Json(std::vector<std::int64_t>(samples.begin(), samples.end())),
            expected["dataset_sample_index"]);
}

}  // namespace

TEST(Blend, reads_its_arguments_as_megatron_does) {
  for (const Json& c : golden("blend_arg_parsing")) {
    if (c["args"].is_null()) continue;
    const auto blend = parse_blend(c["args"].get<Words>(), "{data.paths}");
    EXPECT_EQ(Json(blend.prefixes), c["result"][0]);
    EXPECT_EQ(blend.weights,
              c["result"][1].is_null() ? std::vector<double>() : c["result"][1].get<std::vector<double>>());
  }
}

TEST(Blend, refuses_arguments_that_are_half_weights) {
  EXPECT_EQ(refusal(
                [] {
                  parse_blend(Words{"a", "b", "30", "c"}, "{data.paths}");
                },
                Kind::usage),
            "{data.paths}: 30 is a weight, but a stands where one is expected; give a weight before every "
            "prefix, or none");
  EXPECT_EQ(refusal(
                [] {
                  parse_blend(Words{"0", "a", "1", "b"}, "{data.paths}");
                },
                Kind::usage),
            "{data.paths}: weight 0 of a, expected one above 0 and up to 1e+100");
  EXPECT_EQ(refusal(
                [] {
                  parse_blend(Words{"1e400", "a", "1", "b"}, "{data.paths}");
                },
                Kind::usage),
            "{data.paths}: weight inf of a, expected one above 0 and up to 1e+100");
  EXPECT_EQ(refusal(
                [] {
                  parse_blend(Words{"0x10", "a", "1", "b"}, "{data.paths}");
                },
                Kind::usage),
            "{data.paths}: 1 is a weight, but 0x10 stands where one is expected; give a weight before every "
            "prefix, or none");
  EXPECT_EQ(refusal([] { parse_blend(Words{}, "{data.paths}"); }, Kind::usage),
            "{data.paths}: no data sets given");
}

TEST(Blend, reads_arguments_from_files) {
  const TestFolder folder;
  write_text(folder / "list", " 0.3 a\n0.7\tb\n");
  EXPECT_EQ(read_blend_file(folder / "list"), (BlendArguments{{"a", "b"}, {0.3, 0.7}}));
  write_text(folder / "split", R"({"train": ["30", "a", 70, "b"], "valid": "c d", "test": null})");
  const auto blends = read_split_blend_file(folder / "split");
  EXPECT_EQ(blends[0], (BlendArguments{{"a", "b"}, {30, 70}}));
  EXPECT_EQ(blends[1], (BlendArguments{{"c", "d"}, {}}));
  EXPECT_FALSE(blends[2]);
  write_text(folder / "split", R"({"train": "a", "valid": "c"})");
  const std::string flag = "{data.per_split_file} " + (folder / "split");
  EXPECT_EQ(refusal([&] { read_split_blend_file(folder / "split"); }, Kind::usage),
            flag + ": no test; train, valid and test are needed, null for no data");
  write_text(folder / "split", R"({"train": 1, "valid": "c", "test": "d"})");
  EXPECT_EQ(refusal([&] { read_split_blend_file(folder / "split"); }, Kind::usage),
            flag + " train: expected a list, a text or null");
  write_text(folder / "split", "[]");
  EXPECT_EQ(refusal([&] { read_split_blend_file(folder / "split"); }, Kind::usage),
            flag + ": not a JSON object");
}

TEST(Blend, normalizes_weights_as_numpy_does) {
  for (const Json& c : golden("weight_normalization", "cases")) {
    std::vector<double> weights;
    for (int i = 0; i < c["n"].get<int>(); ++i) weights.push_back(((i * 7919) % 101) / 10.0 + 0.1);
    EXPECT_EQ(numpy_sum(weights), double_of_hex(c["sum_hex"]));
    const auto once = normalized(weights);
    EXPECT_EQ(sha256_of(once), c["sha256_once_float64_le"]);
    EXPECT_EQ(sha256_of(normalized(once)), c["sha256_twice_float64_le"]);
  }
}

TEST(Blend, mixes_as_megatron_does) {
  const Json all = golden("blending");
  for (const Json& c : all["build_blending_indices"]) {
    const BlendIndex index = blend_index(normalized(c["weights"].get<std::vector<double>>()), c["size"]);
    if (c.contains("dataset_index")) {
      expect_index(index, c);
    } else {
      EXPECT_EQ(sha256_of(index.datasets.values()), c["sha256_dataset_index_int16_le"]);
      EXPECT_EQ(sha256_of(index.samples.values()), c["sha256_dataset_sample_index_int64_le"]);
    }
  }
  for (const Json& c : all["build_exhaustive_blending_indices"])
    expect_index(exhaustive_index(c["sizes"].get<std::vector<std::int64_t>>()), c);
}

TEST(Blend, shares_sizes_out_as_each_release_does) {
  for (const Json& c : golden("blending", "sizes_per_dataset")) {
    const auto weights = normalized(c["weights"].get<std::vector<double>>());
    for (std::size_t split = 0; split < 3; ++split) {
      const auto now = shares(weights, c["sizes"][split]);
      const auto before = shares(weights, c["sizes"][split], Surplus::size);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        EXPECT_EQ(now[i].target, c["target"][i][split].get<std::int64_t>());
        EXPECT_EQ(now[i].built, c["buffer_surplus_0_005"][i][split].get<std::int64_t>());
        EXPECT_EQ(before[i].built, c["legacy_1_005"][i][split].get<std::int64_t>());
      }
    }
  }
}
