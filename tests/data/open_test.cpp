#include "weft/data/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"
#include "weft/data/token_writer.h"

using namespace weft;
using namespace weft::data;

namespace {

// The three data sets of the golden end-to-end runs: token j of a data set is (first + j) mod 1000.
void write_golden_sets(const TestFolder& folder) {
  const Json sets = golden("blending", "end_to_end_doc_sizes");
  for (const char* set : {"e1", "e2", "e3"}) {
    TokenWriter writer(folder / set, {.type = TokenType::u16});
    std::int32_t token = sets[set]["first_token"];
    for (const std::int32_t size : sets[set]["sizes"]) {
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(size));
      for (auto& t : tokens) t = token++ % 1000;
      writer.add_document(tokens, std::vector<std::int32_t>{size});
    }
    writer.finish();
  }
}

constexpr std::int64_t length = 16;
GptRows rows(std::int64_t vocabulary = 0) {
  return {.sequence_length = length, .eod = 999, .vocabulary = vocabulary};
}

DataRequest request_for(const TestFolder& folder, std::size_t prefixes) {
  DataRequest request;
  request.paths.shared.emplace();
  for (std::size_t i = 0; i < prefixes; ++i)
    request.paths.shared->prefixes.push_back(folder / ("e" + std::to_string(i + 1)));
  request.split = "8,1,1";
  request.cache_path = folder / "cache";
  request.sizes = {50, 6, 3};
  return request;
}

void expect_blend(const Dataset& set, const Json& expected) {
  EXPECT_EQ(set.size(), expected["len"].get<std::int64_t>());
  if (expected.contains("tokens_0")) {
    EXPECT_EQ(Json(set.get(0)[Field::tokens]), expected["tokens_0"]);
  }
  if (!expected.contains("dataset_index")) return;
  const auto& blend = dynamic_cast<const Blend&>(set);
  const auto datasets = blend.index().datasets.values();
  EXPECT_EQ(Json(std::vector<int>(datasets.begin(), datasets.end())), expected["dataset_index"]);
}

}  // namespace

TEST(OpenData, gives_megatrons_blends_from_end_to_end_and_again_from_the_cache) {
  const TestFolder folder;
  write_golden_sets(folder);
  for (const Json& c : golden("blending", "end_to_end")) {
    SCOPED_TRACE(c["name"].get<std::string>());
    DataRequest request = request_for(folder, c["n_prefixes"]);
    if (!c["weights"].is_null()) request.paths.shared->weights = c["weights"].get<std::vector<double>>();
    for (std::size_t k = 0; k < 3; ++k) {
      request.sizes[k].reset();
      if (!c["sizes"][k].is_null()) request.sizes[k] = c["sizes"][k].get<std::int64_t>();
    }
    for (int again = 0; again < 2; ++again) {
      const Datasets sets = open_gpt_datasets(request, rows());
      for (const Split split : splits) {
        ASSERT_TRUE(sets[split]);
        expect_blend(*sets[split], c["splits"][static_cast<std::size_t>(split)]);
      }
    }
  }
}

TEST(OpenData, mixes_whole_sets_by_length_where_no_weights_are_given) {
  const TestFolder folder;
  write_golden_sets(folder);
  DataRequest request = request_for(folder, 3);
  request.sizes = {100, 1000, 3};
  const Datasets sets = open_gpt_datasets(request, rows());
  EXPECT_EQ(sets[Split::train]->size(), 100);
  EXPECT_EQ(sets[Split::valid]->size(), 12);  // no more than there is
}

TEST(OpenData, opens_paths_for_each_split_whole) {
  const TestFolder folder;
  write_golden_sets(folder);
  DataRequest request = request_for(folder, 1);
  request.paths.shared.reset();
  request.paths.per_split[0] = BlendArguments{{folder / "e1"}, {5.0}};
  request.paths.per_split[1] = BlendArguments{{folder / "e2", folder / "e3"}, {}};
  request.validation = ValidationSets::separate;
  request.split.reset();
  const Datasets sets = open_gpt_datasets(request, rows());
  EXPECT_EQ(sets.of[0].size(), 1U);
  EXPECT_EQ(sets.of[1].size(), 2U);
  EXPECT_TRUE(sets.of[2].empty());
  request.split = "8,1,1";
  EXPECT_EQ(refusal([&] { open_gpt_datasets(request, rows()); }, Kind::usage),
            "{data.split} 8,1,1 is given together with paths for each split, which need none");
}

TEST(OpenData, needs_neither_cache_nor_time_for_the_keyed_order) {
  const TestFolder folder;
  write_golden_sets(folder);
  DataRequest request = request_for(folder, 2);
  request.paths.shared->weights = {0.3, 0.7};
  request.order = DataOrder::keyed;
  request.sizes = {1000000000, 6, 3};
  const Datasets sets = open_gpt_datasets(request, rows());
  EXPECT_EQ(sets[Split::train]->size(), 1000000000);
  EXPECT_EQ(sets[Split::train]->get(999999999)[Field::tokens].size(), 16U);
  EXPECT_FALSE(std::filesystem::exists(folder / "cache"));
}

TEST(OpenData, opens_mock_data_without_files) {
  DataRequest request;
  request.paths.mock = true;
  request.sizes = {200, 40, 0};
  request.mock_vocabulary = 128;
  const Datasets sets = open_gpt_datasets(request, {.sequence_length = 1024, .eod = 127});
  const auto tokens = sets[Split::train]->get(0)[Field::tokens];
  EXPECT_EQ(tokens.size(), 1024U);
  EXPECT_FALSE(sets[Split::test]);
}

TEST(OpenData, refuses_an_index_that_lies_under_the_name_of_data_made_anew) {
  const TestFolder folder;
  const DataRequest request = request_for(folder, 1);
  const auto said = [&](const std::vector<std::int32_t>& lengths) {
    write_golden_sets(folder);
    std::filesystem::remove_all(folder / "cache");
    open_gpt_datasets(request, rows());
    TokenWriter writer(folder / "e1", {.type = TokenType::u16});
    for (const std::int32_t n : lengths)
      writer.add_document(std::vector<std::int32_t>(std::size_t(n)), {{n}});
    writer.finish();
    const std::string sentence = refusal([&] { open_gpt_datasets(request, rows()); });
    return std::regex_replace(sentence.substr((folder / "e1").size()),
                              std::regex(folder / "cache/[0-9a-f]{32}-GPTDataset-train-\\*"), "FILES");
  };
  const std::string advice = "; was the data made anew? Remove those files and start again";
  std::vector<std::int32_t> lengths(41, 13);
  EXPECT_EQ(
      said(lengths),
      " train: the index FILES holds 64 documents, expected a multiple of the 33 that there are" + advice);
  lengths.pop_back();
  EXPECT_THAT(
      said(lengths),
      ::testing::MatchesRegex(": the cached index does not fit the data at (document|sample) [0-9]+; was the "
                              "data made anew[?] Remove the cache and start again; its files are FILES"));
}

TEST(OpenData, says_what_is_missing) {
  const TestFolder folder;
  write_golden_sets(folder);
  const auto said = [](const DataRequest& request, Kind kind = Kind::data) {
    return refusal([&] { open_gpt_datasets(request, rows()); }, kind);
  };
  DataRequest request = request_for(folder, 1);
  request.split = "1,0.000001,0";
  EXPECT_EQ(said(request), (folder / "e1") +
                               " valid: none of 40 documents fall to this split, but 6 samples are asked of "
                               "it; change {data.split}");
  request = request_for(folder, 1);
  request.sizes[0].reset();
  EXPECT_EQ(refusal([&] {
              open_gpt_datasets(request, {.sequence_length = 100000});
            }).substr((folder / "e1").size()),
            " train: 501 tokens, a sample takes 100001; shorten {model.sequence} or add data");
  request = request_for(folder, 1);
  EXPECT_EQ(refusal([&] { open_gpt_datasets(request, rows(100277)); }),
            (folder / "e1") +
                ": tokens of type u16 hold ids up to 65535, the vocabulary has 100277; the "
                "data was made with another tokenizer");
  request = request_for(folder, 1);
  request.paths.shared->weights = {1.0};
  request.sizes[1].reset();
  EXPECT_EQ(said(request, Kind::usage),
            "blend: weights are given, but no number of samples ({eval.whole_set} or "
            "{data.difficulty.metrics}); leave the weights out");
}

TEST(DataPaths, are_given_in_one_way) {
  DataPathFlags flags;
  EXPECT_TRUE(data_paths(flags).mock);
  flags.data_path = {"0.3", "a", "0.7", "b"};
  EXPECT_EQ(data_paths(flags).shared->weights, (std::vector<double>{0.3, 0.7}));
  flags.data_args_path = "x";
  EXPECT_EQ(refusal([&] { data_paths(flags); }, Kind::usage),
            "{data.paths} and {data.paths_file} are both given; give one");
  flags = {.split_paths = {{{"a"}, {"b"}, {}}}};
  EXPECT_EQ(data_paths(flags).per_split[1]->prefixes[0], "b");
  EXPECT_FALSE(data_paths(flags).per_split[2]);
  flags.per_split_data_args_path = "x";
  EXPECT_EQ(refusal([&] { data_paths(flags); }, Kind::usage),
            "{data.per_split_file} is given together with {data.train_paths}, {data.valid_paths} or "
            "{data.test_paths}; give one");
  flags = {.data_path = {"s3://bucket/x"}};
  EXPECT_EQ(refusal([&] { data_paths(flags); }, Kind::usage),
            "s3://bucket/x: weft does not read object storage; copy the .bin and .idx to a disk");
}
