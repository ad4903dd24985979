#include <gtest/gtest.h>

#include "tests/data/golden.h"
#include "tests/data/refusal.h"
#include "weft/data/masked_dataset.h"
#include "weft/data/sentence_mapping.h"
#include "weft/data/token_writer.h"

using namespace weft;
using namespace weft::data;

namespace {

MaskedVocabulary golden_vocabulary(const Json& all) {
  MaskedVocabulary v;
  const auto words = all["vocab"].get<std::vector<std::string>>();
  v.size = static_cast<std::int64_t>(words.size());
  const auto id = [&](std::string_view word) {
    return static_cast<std::int32_t>(std::find(words.begin(), words.end(), word) - words.begin());
  };
  v.cls = id("[CLS]");
  v.sep = id("[SEP]");
  v.mask = id("[MASK]");
  v.pad = id("[PAD]");
  v.bos = id("[BOS]");
  v.eos = id("[EOS]");
  for (const std::string& word : words) v.continues.push_back(word.starts_with("##") ? 1 : 0);
  for (int k = 0; k < 100; ++k) v.sentinels.push_back(id("<extra_id_" + std::to_string(k) + ">"));
  return v;
}

void write_documents(const std::string& prefix, const Json& documents) {
  TokenWriter writer(prefix, {.type = TokenType::u16});
  for (const Json& document : documents) {
    for (const Json& sentence : document) writer.add_item(sentence.get<std::vector<std::int32_t>>());
    writer.end_document();
  }
  writer.finish();
}

MaskedRules rules_of(const Json& config, MaskedModel model) {
  MaskedRules rules{.model = model, .sequence_length = config["sequence_length"]};
  rules.seed = config["random_seed"];
  rules.short_probability = config["short_sequence_probability"];
  rules.masking.probability = config["masking_probability"];
  rules.masking.max_ngram = config["masking_max_ngram"];
  rules.masking.whole_words = config["masking_do_full_word"];
  rules.masking.longer_ngrams = config["masking_use_longer_ngrams"];
  rules.masking.geometric = config["masking_use_geometric_distribution"];
  if (model == MaskedModel::t5) rules.decoder_length = config["sequence_length_decoder"];
  if (model == MaskedModel::bert) rules.sentence_order = config["classification_head"];
  return rules;
}

using Names = std::vector<std::pair<Field, const char*>>;

// Builds each configuration's data set from its documents and compares the mapping and the samples.
void compare(const Json& all, const char* which, MaskedModel model, const Names& names) {
  for (const Json& c : all[which]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const TestFolder folder;
    write_documents(folder / "x", all["documents"]);
    const auto file = std::make_shared<const TokenFile>(folder / "x");
    const MaskedRules rules = rules_of(c["config"], model);
    // Twenty samples are more than one epoch gives here and no more than two do.
    const MappingRules mapping_rules{.max_length = rules.max_length(),
                                     .num_samples = 20,
                                     .short_probability = rules.short_probability,
                                     .seed = rules.seed,
                                     .min_sentences = rules.min_sentences()};
    auto mapping = build_mapping(file->index().documents, {0, file->num_documents()}, file->index().lengths,
                                 mapping_rules, "x");
    std::vector<std::uint32_t> expected;
    for (const Json& row : c["sample_index"]) expected.insert(expected.end(), row.begin(), row.end());
    EXPECT_EQ(std::vector<std::uint32_t>(mapping.values().begin(), mapping.values().end()), expected);
    const MaskedDataset set(file, std::move(mapping), rules, golden_vocabulary(all));
    for (std::size_t i = 0; i < c["samples"].size(); ++i) {
      const Sample sample = set.get(static_cast<std::int64_t>(i));
      for (const auto& [field, name] : names) {
        const Json& row = c["samples"][i][name];
        EXPECT_EQ(Json(sample[field]), row.is_array() ? row : Json::array({row}))
            << name << " of sample " << i;
      }
    }
  }
}

}  // namespace

TEST(SentenceMapping, is_megatrons_in_every_golden_case) {
  const Json all = golden("bert_t5");
  for (const Json& c : all["build_mapping"]) {
    std::vector<std::int32_t> lengths;
    std::vector<std::int64_t> documents = {0};
    for (const Json& document : all["sentence_sizes_per_document"][c["set"].get<std::string>()]) {
      for (const std::int32_t size : document) lengths.push_back(size);
      documents.push_back(static_cast<std::int64_t>(lengths.size()));
    }
    MappingRules rules{.max_length = c["max_seq_length"],
                       .short_probability = c["short_seq_prob"],
                       .seed = c["seed"],
                       .min_sentences = c["min_num_sent"]};
    if (c["num_epochs"] > 1) rules.num_samples = c["max_num_samples"].get<std::int64_t>();
    const auto mapping = build_mapping(Packed<std::int64_t>(std::as_bytes(std::span(documents))),
                                       {0, static_cast<std::int64_t>(documents.size()) - 1},
                                       Packed<std::int32_t>(std::as_bytes(std::span(lengths))), rules, "x");
    std::vector<std::uint32_t> expected;
    for (const Json& row : c["mapping"]) expected.insert(expected.end(), row.begin(), row.end());
    EXPECT_EQ(std::vector<std::uint32_t>(mapping.values().begin(), mapping.values().end()), expected)
        << c["set"];
  }
}

TEST(BertDataset, gives_megatrons_samples) {
  compare(golden("bert_t5"), "bert", MaskedModel::bert,
          {{Field::tokens, "text"},
           {Field::token_types, "types"},
           {Field::labels, "labels"},
           {Field::sentence_order, "is_random"},
           {Field::encoder_mask, "padding_mask"},
           {Field::loss_mask, "loss_mask"},
           {Field::truncated, "truncated"}});
}

TEST(T5Dataset, gives_megatrons_samples) {
  compare(golden("bert_t5"), "t5", MaskedModel::t5,
          {{Field::encoder_tokens, "text_enc"},
           {Field::tokens, "text_dec"},
           {Field::labels, "labels"},
           {Field::loss_mask, "loss_mask"},
           {Field::encoder_mask, "enc_mask"},
           {Field::decoder_mask, "dec_mask"},
           {Field::truncated, "truncated"}});
}

TEST(MaskedData, is_found_again_in_its_cache) {
  const Json all = golden("bert_t5");
  const TestFolder folder;
  write_documents(folder / "x", all["documents"]);
  MaskedRequest request{.prefix = folder / "x",
                        .split = "1,1,0",
                        .sizes = {20, 10, 10},
                        .rules = rules_of(all["bert"][0]["config"], MaskedModel::bert),
                        .vocabulary = golden_vocabulary(all)};
  request.cache_path = folder / "cache";
  const auto built = open_masked_datasets(request);
  const auto again = open_masked_datasets(request);
  EXPECT_FALSE(built[2]);
  EXPECT_EQ(built[0]->get(3)[Field::tokens], again[0]->get(3)[Field::tokens]);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "cache"), {}), 4);
}

TEST(MaskedData, says_why_no_document_gives_a_sample) {
  const TestFolder folder;
  write_documents(folder / "x", Json({{{1, 2, 3}}, {{4, 5}}}));
  MaskedRequest request{.prefix = folder / "x",
                        .split = "1,0,0",
                        .sizes = {5, 0, 0},
                        .rules = {.sequence_length = 16},
                        .vocabulary = {}};
  request.cache_path = folder / "cache";
  EXPECT_EQ(refusal([&] { open_masked_datasets(request); }),
            (folder / "x") +
                " train: none of 2 documents gives a sample; each needs 2 sentences at least, and none above "
                "512 tokens; was the data made with {split_sentences}?");
  request.rules.sequence_length = 4;
  EXPECT_EQ(refusal([&] { open_masked_datasets(request); }, Kind::usage),
            (folder / "x") + " train: samples of 1 tokens, expected at least 2; lengthen {model.sequence}");
  request.rules = {.sequence_length = 16, .seed = 0};
  EXPECT_EQ(refusal([&] { open_masked_datasets(request); }, Kind::usage),
            (folder / "x") + " train: {run.seed} 0, expected one above 0");
}
