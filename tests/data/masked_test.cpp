#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <regex>

#include "tests/data/masked.h"
#include "tests/data/refusal.h"
#include "tests/support/says.h"
#include "weft/data/made_up.h"
#include "weft/data/open.h"
#include "weft/data/sentence_mapping.h"
#include "weft/text/open.h"

using namespace weft;
using namespace weft::data;

namespace {

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
    const MaskedDataset set(source_of(file), std::move(mapping), rules, golden_vocabulary(all));
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

// Of epochs that a number of samples takes, and none that is cut off.
TEST(SentenceMapping, is_of_exactly_as_many_epochs_as_are_asked_for) {
  const std::vector<std::int32_t> lengths{5, 4, 6, 7, 3, 8, 2, 9};
  const std::vector<std::int64_t> documents{0, 3, 5, 8};
  const auto rows = [&](std::optional<std::int64_t> samples, std::int64_t epochs) {
    const auto mapping =
        build_mapping(Packed<std::int64_t>(std::as_bytes(std::span(documents))), {0, 3},
                      Packed<std::int32_t>(std::as_bytes(std::span(lengths))),
                      {.max_length = 12, .num_samples = samples, .epochs = epochs, .min_sentences = 2}, "x");
    return std::vector<std::uint32_t>(mapping.values().begin(), mapping.values().end());
  };
  EXPECT_EQ(rows({}, 1), rows({}, 0));
  for (const std::int64_t epochs : {1, 2, 5}) {
    const auto exact = rows({}, epochs);
    const auto samples = std::ssize(exact) / 3;
    EXPECT_EQ(rows(samples, 0), exact) << epochs;
    EXPECT_EQ(rows(1, epochs), exact) << epochs;
    EXPECT_EQ(refusal([&] { (void)rows(samples + 1, epochs); }, Kind::usage),
              text("x: {data.exact_epochs} ", epochs, " gives ", samples, " samples, and ", samples + 1,
                   " are asked for: take more epochs, or shorten the run"));
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
  const DataRequest request = request_for(folder, "1,1,0", {20, 10, 10});
  const MaskedRules rules = rules_of(all["bert"][0]["config"], MaskedModel::bert);
  const Datasets built = open_masked_datasets(request, rules, golden_vocabulary(all));
  const Datasets again = open_masked_datasets(request, rules, golden_vocabulary(all));
  EXPECT_FALSE(built[Split::test]);
  EXPECT_EQ(built[Split::train]->get(3)[Field::tokens], again[Split::train]->get(3)[Field::tokens]);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "cache"), {}), 4);
}

TEST(MaskedData, refuses_a_mapping_that_lies_under_the_name_of_data_made_anew) {
  const Json all = golden("bert_t5");
  const TestFolder folder;
  write_documents(folder / "x", all["documents"]);
  const DataRequest request = request_for(folder, "1,0,0", {20, 0, 0});
  const MaskedRules rules = rules_of(all["bert"][0]["config"], MaskedModel::bert);
  open_masked_datasets(request, rules, golden_vocabulary(all));
  const auto said = [&](const Json& documents) {
    write_documents(folder / "x", documents);
    const auto open = [&] { open_masked_datasets(request, rules, golden_vocabulary(all)); };
    return std::regex_replace(refusal(open).substr((folder / "x").size()),
                              std::regex(folder / "cache/[0-9a-f]{32}-BERTMaskedWordPieceDataset-\\*"),
                              "FILES");
  };
  Json documents = all["documents"];
  std::rotate(documents.begin(), documents.begin() + 1, documents.end());
  const std::string wrong =
      " train: the index FILES does not fit the data at sample [0-9]+; was the data made anew[?] Remove "
      "those "
      "files and start again";
  EXPECT_THAT(said(documents), ::testing::MatchesRegex(wrong));
  EXPECT_THAT(said(Json({{{1, 2, 3}, {4, 5}}})), ::testing::MatchesRegex(wrong));
}

TEST(MaskedData, refuses_too_short_a_mapping) {
  const std::vector<std::int64_t> bounds = {0, 2};
  const std::vector<std::int32_t> lengths = {3, 3};
  const std::vector<std::uint32_t> rows = {0, 2, 8};
  const auto check = [&](std::int64_t samples) {
    check_mapping(rows, Packed<std::int64_t>(std::as_bytes(std::span(bounds))),
                  Packed<std::int32_t>(std::as_bytes(std::span(lengths))),
                  {.max_length = 8, .num_samples = samples, .min_sentences = 2}, "x");
  };
  check(1);
  EXPECT_EQ(
      refusal([&] { check(2); }),
      "x holds 1 samples, expected at least 2; was the data made anew? Remove those files and start again");
}

TEST(MaskedData, says_why_no_document_gives_a_sample) {
  const TestFolder folder;
  write_documents(folder / "x", Json({{{1, 2, 3}}, {{4, 5}}}));
  const DataRequest request = request_for(folder, "1,0,0", {5, 0, 0});
  const auto said = [&](const MaskedRules& rules, Kind kind) {
    return refusal([&] { open_masked_datasets(request, rules, {}); }, kind);
  };
  EXPECT_EQ(said({.sequence_length = 16}, Kind::data),
            (folder / "x") +
                " train: none of 2 documents gives a sample; each needs 2 sentences at least, and none above "
                "512 tokens; was the data made with {split_sentences}?");
  EXPECT_EQ(said({.sequence_length = 4}, Kind::usage),
            (folder / "x") + " train: samples of 1 tokens, expected at least 2; lengthen {model.sequence}");
  EXPECT_EQ(said({.sequence_length = 16, .seed = 0}, Kind::usage),
            (folder / "x") + " train: {run.seed} 0, expected one above 0");
}

TEST(MaskedData, refuses_documents_that_were_never_cut_into_sentences) {
  const TestFolder folder;
  const std::vector<int> whole(40, 7);
  write_documents(folder / "x", Json({{whole}, {whole}}));
  const DataRequest request = request_for(folder, "1,0,0", {5, 0, 0});
  const MaskedRules rules{.model = MaskedModel::t5, .sequence_length = 16};
  MaskedVocabulary vocabulary;
  vocabulary.sentinels = {90, 91};
  EXPECT_EQ(
      refusal([&] { open_masked_datasets(request, rules, vocabulary); }, Kind::data),
      (folder / "x") +
          " train: each of 2 documents is one sentence, of 40 tokens in the mean, and a sample takes 14, so "
          "that most would never be read; was the data made with {split_sentences}?");
}

TEST(MaskedData, reads_a_split_of_short_documents_beside_those_that_were_cut) {
  const TestFolder folder;
  const std::vector<int> sentence(5, 7), whole(40, 7);
  write_documents(folder / "x", Json({{sentence, sentence}, {whole}}));
  const MaskedRules rules{.model = MaskedModel::t5, .sequence_length = 16};
  MaskedVocabulary vocabulary;
  vocabulary.sentinels = {90, 91};
  const Datasets opened = open_masked_datasets(request_for(folder, "1,1,0", {5, 2, 0}), rules, vocabulary);
  ASSERT_NE(opened[Split::valid], nullptr);
  EXPECT_GE(opened[Split::valid]->size(), 2);
}

TEST(MaskedData, is_blended_and_told_apart_from_what_another_tokenizer_made) {
  const Json all = golden("bert_t5");
  const TestFolder folder;
  write_documents(folder / "x", all["documents"]);
  write_documents(folder / "y", all["documents"]);
  DataRequest request = request_for(folder, "1,0,0", {20, 0, 0});
  request.paths.shared = BlendArguments{{folder / "x", folder / "y"}, {0.5, 0.5}};
  const MaskedRules rules = rules_of(all["bert"][0]["config"], MaskedModel::bert);
  MaskedVocabulary vocabulary = golden_vocabulary(all);
  const Datasets sets = open_masked_datasets(request, rules, vocabulary);
  EXPECT_GE(sets[Split::train]->size(), 20);
  EXPECT_EQ(sets[Split::train]->origins(0)[0].source == folder / "x",
            sets[Split::train]->origins(1)[0].source == folder / "y");
  vocabulary.size = 100'277;
  EXPECT_EQ(refusal([&] { open_masked_datasets(request, rules, vocabulary); }),
            (folder / "x") +
                ": tokens of type u16 hold ids up to 65535, the vocabulary has 100277; the "
                "data was made with another tokenizer");
  request.order = DataOrder::keyed;
  EXPECT_EQ(refusal([&] { open_masked_datasets(request, rules, vocabulary); }, Kind::usage),
            "bert: samples are drawn by a stored index; leave {data.index=keyed} out");
}

TEST(MaskedData, is_made_up_without_files) {
  DataRequest request;
  request.paths.mock = true;
  request.sizes = {100, 10, 0};
  const MaskedVocabulary vocabulary = bare_vocabulary(64);
  const Datasets bert = open_masked_datasets(request, {.sequence_length = 32}, vocabulary);
  const Sample sample = bert[Split::train]->get(7);
  EXPECT_EQ(sample[Field::tokens].size(), 32U);
  EXPECT_EQ(sample[Field::tokens][0], vocabulary.cls);
  EXPECT_GT(std::ranges::count(sample[Field::loss_mask], 1), 0);
  const MaskedRules spans{.model = MaskedModel::t5, .sequence_length = 32, .decoder_length = 24};
  const Datasets t5 = open_masked_datasets(request, spans, vocabulary);
  EXPECT_EQ(t5[Split::valid]->get(3)[Field::tokens].size(), 24U);
  EXPECT_EQ(refusal([] { (void)bare_vocabulary(7); }, Kind::usage),
            "{data.mock}: a vocabulary of 7 tokens, expected at least 8");
}

TEST(MaskedData, ids_beyond_the_vocabulary_are_refused) {
  const Json all = golden("bert_t5");
  const TestFolder folder;
  write_documents(folder / "x", Json({{{5, 6, 7}, {8, 9, 10}}, {{5, 6}, {40, 9, 10}}}));
  MaskedVocabulary vocabulary = golden_vocabulary(all);
  vocabulary.size = 40;
  const DataRequest request = request_for(folder, "1,0,0", {20, 0, 0});
  const MaskedRules rules{.sequence_length = 16, .short_probability = 0};
  const Datasets sets = open_masked_datasets(request, rules, vocabulary);
  EXPECT_EQ(refusal([&] {
              for (std::int64_t i = 0; i < sets[Split::train]->size(); ++i) (void)sets[Split::train]->get(i);
            }),
            (folder / "x") +
                ": token 40 in sequence 3, the vocabulary has 40 tokens; was the data made with another "
                "tokenizer?");
}

TEST(MaskedData, says_where_sentinels_are_too_few_before_a_sample_is_read) {
  const TestFolder folder;
  const auto said = [&](std::int64_t length, std::size_t sentinels) {
    MaskedRules rules{.model = MaskedModel::t5, .sequence_length = length};
    rules.masking = usual_masking(MaskedModel::t5);
    MaskedVocabulary vocabulary;
    vocabulary.sentinels.resize(sentinels);
    return support::says([&] {
      (void)open_masked_datasets(request_for(folder, "1,0,0", {0, 0, 0}), rules, vocabulary);
    });
  };
  EXPECT_EQ(said(512, 53),
            "usage: t5: up to 54 spans of a text of 510 tokens are hidden, and 53 sentinels stand for them; "
            "give more {data.tokenizer.extra_ids}, or shorten {model.sequence}");
  EXPECT_EQ(said(512, 54), "nothing");
  EXPECT_EQ(said(1024, 100), "nothing");
  EXPECT_THAT(said(2048, 100), ::testing::HasSubstr("t5: up to 155 spans of a text of 2046 tokens"));
}

// A bound that is far from what happens would refuse what trains: half of it is met in a few hundred texts.
TEST(Masking, hides_no_more_spans_than_it_says_and_not_far_fewer) {
  constexpr std::int64_t target = 510;
  const MaskedVocabulary vocabulary;
  for (const MaskingRules& rules : {usual_masking(MaskedModel::t5), usual_masking(MaskedModel::bert)}) {
    std::size_t most = 0;
    for (std::uint32_t seed = 1; seed < 400; ++seed) {
      NumpyRandom random(seed);
      const Masked masked = mask_tokens(std::vector<std::int32_t>(target, 7), target,
                                        {vocabulary, rules, Replacement::t5}, random);
      most = std::max(most, masked.spans.size());
    }
    EXPECT_LE(std::int64_t(most), most_spans(target, rules));
    EXPECT_GT(std::int64_t(2 * most), most_spans(target, rules));
  }
  EXPECT_EQ(most_spans(20, {.max_ngram = 1}), 3);
  EXPECT_EQ(most_spans(6, {}), 0);
}

TEST(Masking, hides_no_more_tokens_than_it_says_and_sometimes_as_many) {
  const MaskingRules rules = usual_masking(MaskedModel::bert);
  MaskedVocabulary vocabulary;
  vocabulary.size = 100;
  vocabulary.continues.resize(100);
  for (std::size_t id = 0; id < 100; ++id) vocabulary.continues[id] = id % 3 == 0 ? 1 : 0;
  for (const std::int64_t target : {8, 29, 61}) {
    std::int64_t most = 0;
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
      NumpyRandom random(seed);
      std::vector<std::int32_t> tokens(std::size_t(target + 3 - seed % 2));
      for (std::int32_t& token : tokens) token = std::int32_t(random.randint(5, 100));
      const Masked masked =
          mask_tokens(std::move(tokens), target, {vocabulary, rules, Replacement::bert}, random);
      most = std::max(most, std::ssize(masked.hidden));
    }
    EXPECT_EQ(most, most_hidden(target, rules)) << target;
  }
}

TEST(MaskedData, says_which_sample_lacks_sentinels_or_places) {
  const Json all = golden("bert_t5");
  const TestFolder folder;
  write_documents(folder / "x", all["documents"]);
  const auto said = [&](const MaskedVocabulary& vocabulary, std::int64_t decoder) {
    MaskedRules rules = rules_of(all["t5"][0]["config"], MaskedModel::t5);
    rules.decoder_length = decoder;
    rules.masking.max_ngram = 1;
    const auto file = std::make_shared<const TokenFile>(folder / "x");
    auto rows = build_mapping(
        file->index().documents, {0, file->num_documents()}, file->index().lengths,
        {.max_length = rules.max_length(), .num_samples = 50, .seed = 1, .min_sentences = 1}, "x");
    const MaskedDataset set(source_of(file), std::move(rows), rules, vocabulary);
    return support::says([&] {
      for (std::int64_t i = 0; i < set.size(); ++i) (void)set.get(i);
    });
  };
  MaskedVocabulary few = golden_vocabulary(all);
  few.sentinels.resize(1);
  EXPECT_THAT(said(few, 48),
              ::testing::MatchesRegex("usage: t5: [0-9]+ spans are hidden, the tokenizer has 1 "
                                      "sentinels; give more .data.tokenizer.extra_ids."));
  EXPECT_THAT(said(golden_vocabulary(all), 4),
              ::testing::MatchesRegex("data: t5: the decoder's input of [0-9]+ tokens, there is room for 4; "
                                      "lengthen .model.decoder_sequence."));
}
