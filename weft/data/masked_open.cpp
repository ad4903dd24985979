// Opening BERT's and T5's data sets, with their cached mappings.
#include <filesystem>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/cache_file.h"
#include "weft/data/fitting.h"
#include "weft/data/index_cache.h"
#include "weft/data/made_up.h"
#include "weft/data/md5.h"
#include "weft/data/npy.h"
#include "weft/data/open.h"
#include "weft/data/sentence_mapping.h"

namespace weft::data {
namespace {

const char* word(bool value) { return value ? "true" : "false"; }

std::string masking_keys(const MaskedRules& rules) {
  const MaskingRules& m = rules.masking;
  const std::string last = rules.model == MaskedModel::bert
                               ? text("\"classification_head\": ", word(rules.sentence_order))
                               : text("\"sequence_length_decoder\": ", rules.decoder_length);
  return text("{\"masking_probability\": ", python_float(m.probability),
              ", \"short_sequence_probability\": ", python_float(rules.short_probability),
              ", \"masking_max_ngram\": ", m.max_ngram, ", \"masking_do_full_word\": ", word(m.whole_words),
              ", \"masking_do_permutation\": false, \"masking_use_longer_ngrams\": ", word(m.longer_ngrams),
              ", \"masking_use_geometric_distribution\": ", word(m.geometric), ", ", last, "}");
}

class MaskedMembers final : public Members {
 public:
  MaskedMembers(const DataRequest& request, const MaskedRules& rules, const MaskedVocabulary& vocabulary,
                Portions portions)
      : request_(request), rules_(rules), vocabulary_(vocabulary), portions_(std::move(portions)) {}

  Member of(const std::string& prefix, SamplesWanted size) const override {
    const auto file = std::make_shared<const TokenFile>(prefix);
    check_vocabulary(*file, vocabulary_.size);
    const std::string who = text(prefix, ' ', name(portions_.split));
    const Range range = documents_of(portions_, file->num_documents(), who, size);
    Member out{nullptr, identity_of(prefix, size)};
    out.set = std::make_shared<MaskedDataset>(source_of(file), mapping_of(out.identity, *file, range), rules_,
                                              vocabulary_);
    return out;
  }
  Member made_up(SamplesWanted size) const override {
    const auto text = std::make_shared<const MadeUpSentences>(vocabulary_, rules_.max_length());
    const Range range = documents_of(portions_, text->num_documents(), text->name(), size);
    auto rows = build_mapping(text->documents(), range, text->lengths(), mapping_rules(size), text->name());
    return {std::make_shared<MaskedDataset>(text, std::move(rows), rules_, vocabulary_), {}};
  }

 private:
  MappingRules mapping_rules(SamplesWanted size) const {
    return {.max_length = rules_.max_length(),
            .num_samples = size,
            .epochs = portions_.split == Split::train ? request_.exact_epochs : 0,
            .short_probability = rules_.short_probability,
            .seed = rules_.seed,
            .min_sentences = rules_.min_sentences()};
  }

  Identity identity_of(const std::string& prefix, SamplesWanted size) const {
    Identity identity{.path = prefix, .num_samples = size, .split = portions_.split};
    identity.kind =
        rules_.model == MaskedModel::bert ? "BERTMaskedWordPieceDataset" : "T5MaskedWordPieceDataset";
    identity.seed = rules_.seed;
    identity.sequence_length = rules_.sequence_length;
    identity.split_text = portions_.text;
    identity.matrix = portions_.matrix;
    identity.tokenizer = request_.tokenizer;
    if (portions_.split == Split::train) identity.epochs = request_.exact_epochs;
    identity.more = masking_keys(rules_);
    return identity;
  }

  Array<std::uint32_t> mapping_of(const Identity& identity, const TokenFile& file, Range range) const {
    const std::string description = describe(identity);
    const auto folder = request_.cache_path ? std::filesystem::path(*request_.cache_path)
                                            : default_cache_folder(file.prefix(), identity.kind);
    const std::string name = md5_hex(description) + "-" + identity.kind + "-";
    const auto described = folder / (name + "description.txt"), rows = folder / (name + "sample_index.npy");
    const MappingRules rules = mapping_rules(identity.num_samples);
    const TokenIndex& index = file.index();
    const std::string who = text(file.prefix(), ' ', data::name(portions_.split));
    if (std::filesystem::exists(described) && std::filesystem::exists(rows)) {
      auto found = read_npy<std::uint32_t>(rows, 3);
      check_mapping(found.values(), index.documents, index.lengths, rules,
                    text(who, ": the index ", (folder / (name + "*")).string()));
      return found;
    }
    Array<std::uint32_t> mapping = build_mapping(index.documents, range, index.lengths, rules, who);
    make_cache_folder(folder);
    write_npy(rows, mapping.values(), 3);
    write_cache_file(described, std::string_view(description));
    return mapping;
  }

  const DataRequest& request_;
  const MaskedRules& rules_;
  const MaskedVocabulary& vocabulary_;
  Portions portions_;
};

// A sample that finds too few would end a run after hours.
void check_sentinels(const MaskedRules& rules, const MaskedVocabulary& vocabulary) {
  const std::int64_t tokens = rules.max_length(), spans = most_spans(tokens, rules.masking);
  if (rules.model == MaskedModel::t5 && spans > std::ssize(vocabulary.sentinels))
    fail(Kind::usage, "t5: up to ", spans, " spans of a text of ", tokens, " tokens are hidden, and ",
         vocabulary.sentinels.size(),
         " sentinels stand for them; give more {data.tokenizer.extra_ids}, or shorten {model.sequence}");
}

}  // namespace

Datasets open_masked_datasets(const DataRequest& request, const MaskedRules& rules,
                              const MaskedVocabulary& vocabulary) {
  if (request.order == DataOrder::keyed)
    fail(Kind::usage, rules.model == MaskedModel::bert ? "bert" : "t5",
         ": samples are drawn by a stored index; leave {data.index=keyed} out");
  check_sentinels(rules, vocabulary);
  return open_datasets(request, [&](const Portions& portions) {
    return std::make_unique<MaskedMembers>(request, rules, vocabulary, portions);
  });
}

}  // namespace weft::data
