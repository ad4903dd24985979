#include "weft/data/gpt_dataset.h"

#include <gtest/gtest.h>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"
#include "weft/data/token_writer.h"

using namespace weft;
using namespace weft::data;

namespace {

void write_documents(const std::string& prefix, const Json& documents) {
  TokenWriter writer(prefix, {.type = TokenType::u16});
  for (const Json& tokens : documents)
    writer.add_document(tokens.get<std::vector<std::int32_t>>(),
                        std::vector<std::int32_t>{static_cast<std::int32_t>(tokens.size())});
  writer.finish();
}

std::unique_ptr<GptDataset> dataset(std::shared_ptr<const Source> source, const Order& order,
                                    const GptRows& rows) {
  const Range range{0, source->num_sequences()};
  const Epochs epochs = plan_epochs(count_tokens(source->lengths(), range, "x"), order, "x");
  auto composition = indexed_composition(source, build_index(source->lengths(), range, order, epochs), order);
  return std::make_unique<GptDataset>(source, std::move(composition), rows);
}

GptRows rows_of(const Json& c) {
  GptRows rows{.sequence_length = c["seq_length"]};
  rows.extra_token = c["add_extra_token"];
  rows.eod = c["eod"];
  rows.pad = c["effective_pad"];
  rows.reset_positions = c["reset_position_ids"];
  rows.reset_attention = c["reset_attention_mask"];
  rows.mask_eod_loss = c["eod_mask_loss"];
  return rows;
}

// The rows of a mask as the golden file writes them: 1 where attention is masked.
std::vector<std::string> mask_rows(const Sample& sample) {
  const std::size_t length = sample[Field::tokens].size();
  const auto& segments = sample[Field::documents];
  std::vector<std::string> rows(length, std::string(length, '1'));
  for (std::size_t r = 0; r < length; ++r)
    for (std::size_t c = 0; c <= r; ++c)
      if (segments.empty() || segments[r] == segments[c]) rows[r][c] = '0';
  return rows;
}

void expect_sample(const Sample& sample, const Json& expected) {
  EXPECT_EQ(Json(sample[Field::tokens]), expected["tokens"]);
  EXPECT_EQ(Json(sample[Field::labels]), expected["labels"]);
  EXPECT_EQ(Json(sample[Field::positions]), expected["position_ids"]);
  const char* mask =
      expected.contains("loss_mask_without_cache_quirk") ? "loss_mask_without_cache_quirk" : "loss_mask";
  EXPECT_EQ(sample[Field::loss_mask], expected[mask].get<std::vector<std::int32_t>>());
  if (!expected.contains("attention_mask_rows")) return;
  EXPECT_EQ(Json(mask_rows(sample)), expected["attention_mask_rows"]);
}

}  // namespace

TEST(GptDataset, gives_megatrons_samples_in_every_golden_case) {
  for (const Json& c : golden("gpt_samples", "cases")) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const TestFolder folder;
    write_documents(folder / "x", c["doc_tokens"]);
    Order order{.sequence_length = c["seq_length"], .extra_token = c["add_extra_token"]};
    if (!c["drop_last_partial"] && c["split"] == "valid") order.last = LastSample::kept;
    const auto set = dataset(open_source(folder / "x"), order, rows_of(c));
    EXPECT_EQ(set->size(), c["len"].get<std::int64_t>());
    for (const Json& expected : c["samples"])
      if (!expected["idx"].is_null()) expect_sample(set->get(expected["idx"]), expected);
  }
}

TEST(GptDataset, gives_megatrons_mock_samples) {
  for (const Json& c : golden("mock_gpt_dataset")) {
    const auto source = mock_source(c["vocab_size"], c["eod"]);
    const std::size_t some = c["seq_length"] < 100 ? 1 : 3;  // one split has millions of samples to digest
    for (std::size_t k = 0; k < some; ++k) {
      const Json& expected = c["splits"][k];
      const Order order{.sequence_length = c["seq_length"],
                        .num_samples = c["sizes"][k].get<std::int64_t>(),
                        .seed = c["seed"]};
      const Range range = range_of(*split_matrix(c["split"].get<std::string>())[k], source->num_sequences());
      const Epochs epochs = plan_epochs(count_tokens(source->lengths(), range, "x"), order, "x");
      EXPECT_EQ(epochs.tokens, expected["tokens_per_epoch"].get<std::int64_t>());
      GptIndex index = build_index(source->lengths(), range, order, epochs);
      EXPECT_EQ(sha256_of(index.documents.values()), expected["document_index_sha256"]);
      EXPECT_EQ(sha256_of(index.samples.values()), expected["sample_index_sha256"]);
      EXPECT_EQ(sha256_of(index.shuffle.values()), expected["shuffle_index_sha256"]);
      const GptDataset set(source, indexed_composition(source, std::move(index), order),
                           {.sequence_length = c["seq_length"], .eod = c["eod"]});
      const auto first = [&](std::int64_t i) {
        auto tokens = set.get(i)[Field::tokens];
        tokens.resize(16);
        return Json(tokens);
      };
      EXPECT_EQ(first(1), expected["sample1_tokens_first16"]);
    }
  }
}

namespace {

Sample completed(std::vector<std::int32_t> tokens, std::vector<Piece> pieces, const GptRows& rows) {
  Sample sample;
  sample[Field::tokens] = std::move(tokens);
  sample.pieces() = std::move(pieces);
  complete_gpt_sample(sample, rows);
  return sample;
}

}  // namespace

TEST(GptDataset, keeps_attention_and_positions_within_documents_when_asked) {
  const GptRows rows{.sequence_length = 6, .pad = -1, .between_documents = true};
  // One token short of a whole sample.
  const Sample sample = completed({1, 2, 3, 4, 5, 6}, {{0, 2, 3}, {1, 0, 2}, {2, 0, 1}}, rows);
  EXPECT_EQ(Json(sample[Field::positions]), Json({0, 1, 2, 0, 1, 0}));
  EXPECT_EQ(Json(sample[Field::documents]), Json({0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(Json(sample[Field::loss_mask]), Json({1, 1, 1, 1, 1, 0}));
  // The last piece is only the extra token.
  EXPECT_EQ(Json(completed({1, 2, 3, 4, 5, 6, 7}, {{0, 0, 6}, {1, 0, 1}}, rows)[Field::documents]),
            Json({0, 0, 0, 0, 0, 0}));
}

TEST(GptDataset, knows_where_its_tokens_come_from) {
  const TestFolder folder;
  write_documents(folder / "x", Json({{1, 2, 3}, {4, 5}, {6, 7, 8, 9}}));
  const auto set = dataset(open_source(folder / "x"), {.sequence_length = 4}, {.sequence_length = 4});
  const auto source = open_source(folder / "x");
  for (std::int64_t i = 0; i < set->size(); ++i) {
    std::vector<std::int32_t> tokens;
    for (const Origin& origin : set->origins(i)) {
      std::vector<std::int32_t> part(static_cast<std::size_t>(origin.count));
      source->read(origin.sequence, origin.from, part);
      tokens.insert(tokens.end(), part.begin(), part.end());
      EXPECT_EQ(origin.source, folder / "x");
    }
    tokens.pop_back();
    EXPECT_EQ(tokens, set->get(i)[Field::tokens]);
  }
}

TEST(GptDataset, says_which_token_the_vocabulary_does_not_have) {
  const TestFolder folder;
  write_documents(folder / "x", Json({{1, 2, 3, 70}, {4, 5}}));
  const auto set =
      dataset(open_source(folder / "x"), {.sequence_length = 4}, {.sequence_length = 4, .vocabulary = 64});
  EXPECT_EQ(refusal([&] { static_cast<void>(set->get(0)); }),
            (folder / "x") +
                ": token 70 in sequence 0, the vocabulary has 64 tokens; was the data made with another "
                "tokenizer?");
  EXPECT_EQ(refusal([&] { static_cast<void>(set->get(1)); }),
            (folder / "x") + ": sample 1 asked for, there are 1");
}

TEST(GptDataset, refuses_a_cached_index_of_other_data) {
  const TestFolder folder;
  write_documents(folder / "x", Json({{1, 2, 3}, {4, 5}}));
  const auto source = open_source(folder / "x");
  const auto said = [&](std::int32_t document, std::int32_t last, std::int32_t end) {
    GptIndex index{Array<std::int32_t>(1), Array<std::int32_t>(4), Array<std::uint32_t>(1)};
    index.documents.writable()[0] = document;
    index.samples.writable()[2] = last;
    index.samples.writable()[3] = end;
    const GptDataset set(source, indexed_composition(source, std::move(index), {.sequence_length = 1}),
                         {.sequence_length = 1});
    return refusal([&] { static_cast<void>(set.get(0)); }).substr((folder / "x").size());
  };
  const auto wrong = [](const std::string& place) {
    return ": the cached index does not fit the data at " + place +
           "; was the data made anew? Remove the cache and start again";
  };
  EXPECT_EQ(said(0, 1, 1), wrong("sample 0"));
  EXPECT_EQ(said(0, 0, 7), wrong("document 0"));
  EXPECT_EQ(said(0, 0, 2), wrong("sample 0"));
  EXPECT_EQ(said(9, 0, 1), wrong("document 9"));
}

TEST(Padding, needs_an_id_of_its_own) {
  const std::vector<std::int32_t> others = {7, 9};
  EXPECT_EQ(effective_pad(3, others, false), 3);
  EXPECT_EQ(effective_pad(7, others, false), -1);
  EXPECT_EQ(effective_pad(7, others, true), 7);
  EXPECT_EQ(effective_pad(std::nullopt, others, true), -1);
}
