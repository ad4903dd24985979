// The words that samples of BERT and T5 need, and what becomes of padding wherever it stands among them.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/data/masked.h"
#include "tests/data/refusal.h"
#include "weft/data/masked_dataset.h"
#include "weft/text/open.h"

using namespace weft;
using namespace weft::data;

namespace {

/// A vocabulary of the golden words alone, and of those that follow them there.
struct GoldenWords {
  Json all = golden("bert_t5");
  std::vector<std::string> words = all["vocab"];
  std::size_t count = std::size_t(std::ranges::find(words, "[BOS]") - words.begin());
  TestFolder folder;

  std::unique_ptr<Tokenizer> opened(std::size_t lines,
                                    const std::function<void(TokenizerOptions&)>& how) const {
    std::ofstream file(folder / "vocab.txt");
    for (std::size_t i = 0; i < lines; ++i) file << words[i] << '\n';
    file.close();
    TokenizerOptions options = tokenizer_named("bert-cased:" + (folder / "vocab.txt"));
    how(options);
    return open_tokenizer(options);
  }
};

}  // namespace

// Bounds of a decoder's text behind the words, unless they are among them, and sentinels behind these.
TEST(T5Vocabulary, is_that_of_the_megatron_that_read_the_flag) {
  const GoldenWords golden;
  const auto hundred = [](TokenizerOptions& o) { o.vocab_extra_ids = 100; };
  for (const std::size_t lines : {golden.count, golden.count + 1, golden.count + 2}) {
    const auto tokenizer = golden.opened(lines, hundred);
    std::vector<std::string> found;
    for (std::int32_t id = 0; id < tokenizer->size(); ++id) found.push_back(tokenizer->token(id));
    EXPECT_EQ(found, golden.words);
    const MaskedVocabulary ours = masked_vocabulary(*tokenizer, MaskedModel::t5);
    const MaskedVocabulary theirs = golden_vocabulary(golden.all);
    EXPECT_EQ(ours.bos, theirs.bos);
    EXPECT_EQ(ours.eos, theirs.eos);
    EXPECT_EQ(ours.sentinels, theirs.sentinels);
  }
}

TEST(T5Vocabulary, has_its_sentinels_right_behind_the_words_where_nobody_asks_for_some) {
  const GoldenWords golden;
  const auto tokenizer = golden.opened(golden.count, [](TokenizerOptions&) {});
  const MaskedVocabulary found = masked_vocabulary(*tokenizer, MaskedModel::t5);
  EXPECT_EQ(found.size, std::int64_t(golden.count) + 100);
  EXPECT_EQ(found.sentinels.front(), std::int32_t(golden.count));
  EXPECT_EQ(found.bos, tokenizer->special("[CLS]"));
  EXPECT_EQ(found.eos, tokenizer->special("[SEP]"));
}

TEST(T5Vocabulary, of_the_old_form_has_no_sentinels_but_those_asked_for) {
  const GoldenWords golden;
  const auto old = golden.opened(golden.count, [](TokenizerOptions& o) { o.legacy_tokenizer = true; });
  EXPECT_EQ(old->size(), std::int32_t(golden.count) + 2);
  EXPECT_EQ(old->special("bos"), std::int32_t(golden.count));
  EXPECT_EQ(refusal([&] { (void)masked_vocabulary(*old, MaskedModel::t5); }, Kind::usage),
            "t5: the tokenizer has no <extra_id_0>; give {data.tokenizer.extra_ids} 100");
}

// T5's own tokenizers have no mask, and a decoder starts with padding, which it then sees all the same.
TEST(T5Vocabulary, needs_neither_a_mask_nor_a_beginning) {
  const Json all = golden("bert_t5");
  const TestFolder folder;
  write_documents(folder / "x", all["documents"]);
  MaskedVocabulary vocabulary = golden_vocabulary(all);
  const MaskedRules rules = rules_of(all["t5"][0]["config"], MaskedModel::t5);
  const DataRequest request = request_for(folder, "1,0,0", {20, 0, 0});
  const Sample usual = open_masked_datasets(request, rules, vocabulary)[Split::train]->get(3);
  vocabulary.mask = vocabulary.bos = vocabulary.pad;
  const Sample bare = open_masked_datasets(request, rules, vocabulary)[Split::train]->get(3);
  EXPECT_EQ(bare[Field::encoder_tokens], usual[Field::encoder_tokens]);
  EXPECT_EQ(bare[Field::decoder_mask], usual[Field::decoder_mask]);
  EXPECT_EQ(bare[Field::labels], usual[Field::labels]);
  EXPECT_EQ(bare[Field::tokens][0], 0);
}

// A vocabulary that begins with another word has its padding elsewhere, and two token types all the same.
TEST(BertDataset, padding_is_absent_whatever_its_id) {
  const Json all = golden("bert_t5");
  const TestFolder folder;
  write_documents(folder / "x", all["documents"]);
  MaskedVocabulary vocabulary = golden_vocabulary(all);
  const MaskedRules rules = rules_of(all["bert"][0]["config"], MaskedModel::bert);
  const DataRequest request = request_for(folder, "1,0,0", {20, 0, 0});
  const Sample usual = open_masked_datasets(request, rules, vocabulary)[Split::train]->get(3);
  EXPECT_GT(std::ranges::count(usual[Field::encoder_mask], 0), 0);
  for (const std::int32_t pad : {1, 4000}) {
    vocabulary.pad = pad;
    const Sample other = open_masked_datasets(request, rules, vocabulary)[Split::train]->get(3);
    for (const Field field : {Field::encoder_mask, Field::token_types, Field::tokens, Field::labels})
      EXPECT_EQ(other[field], usual[field]) << pad;
  }
}
