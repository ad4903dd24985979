// Documents, rules and words of the golden masked samples, for tests of BERT's and T5's data.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tests/data/golden.h"
#include "weft/data/open.h"
#include "weft/data/token_writer.h"

namespace weft::data {

inline MaskedVocabulary golden_vocabulary(const Json& all) {
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

inline void write_documents(const std::string& prefix, const Json& documents) {
  TokenWriter writer(prefix, {.type = TokenType::u16});
  for (const Json& document : documents) {
    std::vector<std::int32_t> tokens, lengths;
    for (const Json& sentence : document) {
      for (const std::int32_t token : sentence) tokens.push_back(token);
      lengths.push_back(std::int32_t(sentence.size()));
    }
    writer.add_document(tokens, lengths);
  }
  writer.finish();
}

inline MaskedRules rules_of(const Json& config, MaskedModel model) {
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

inline DataRequest request_for(const TestFolder& folder, const std::string& split,
                               const std::array<std::optional<std::int64_t>, 3>& sizes) {
  DataRequest request;
  request.paths.shared.emplace();
  request.paths.shared->prefixes = {folder / "x"};
  request.split = split;
  request.sizes = sizes;
  request.cache_path = folder / "cache";
  return request;
}

}  // namespace weft::data
