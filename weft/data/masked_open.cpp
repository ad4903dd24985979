// Opening BERT's and T5's data sets, with their cached mappings.
#include <filesystem>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/data/cache_file.h"
#include "weft/data/index_cache.h"
#include "weft/data/masked_dataset.h"
#include "weft/data/md5.h"
#include "weft/data/npy.h"

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

Identity identity_of(const MaskedRequest& request, Split split) {
  Identity identity{
      .path = request.prefix, .num_samples = request.sizes[static_cast<std::size_t>(split)], .split = split};
  identity.kind =
      request.rules.model == MaskedModel::bert ? "BERTMaskedWordPieceDataset" : "T5MaskedWordPieceDataset";
  identity.seed = request.rules.seed;
  identity.sequence_length = request.rules.sequence_length;
  identity.split_text = request.split;
  identity.matrix = split_matrix(request.split);
  identity.tokenizer = request.tokenizer;
  identity.more = masking_keys(request.rules);
  return identity;
}

Array<std::uint32_t> mapping_of(const MaskedRequest& request, const TokenFile& file, Split split,
                                Range range) {
  const Identity identity = identity_of(request, split);
  const std::string description = describe(identity);
  const auto folder = request.cache_path ? std::filesystem::path(*request.cache_path)
                                         : default_cache_folder(request.prefix, identity.kind);
  const std::string name = md5_hex(description) + "-" + identity.kind + "-";
  const auto described = folder / (name + "description.txt"), rows = folder / (name + "sample_index.npy");
  if (std::filesystem::exists(described) && std::filesystem::exists(rows))
    return read_npy<std::uint32_t>(rows, 3);
  const MappingRules rules{.max_length = request.rules.max_length(),
                           .num_samples = identity.num_samples,
                           .short_probability = request.rules.short_probability,
                           .seed = request.rules.seed,
                           .min_sentences = request.rules.min_sentences()};
  Array<std::uint32_t> mapping = build_mapping(file.index().documents, range, file.index().lengths, rules,
                                               text(request.prefix, ' ', data::name(split)));
  make_directories(folder);
  write_npy(rows, mapping.values(), 3);
  write_cache_file(described, std::string_view(description));
  return mapping;
}

}  // namespace

std::array<std::shared_ptr<const Dataset>, 3> open_masked_datasets(const MaskedRequest& request) {
  const auto file = std::make_shared<const TokenFile>(request.prefix);
  const SplitMatrix matrix = split_matrix(request.split);
  std::array<std::shared_ptr<const Dataset>, 3> sets;
  for (const Split split : splits) {
    const auto k = static_cast<std::size_t>(split);
    if (!matrix[k] || request.sizes[k] == std::optional<std::int64_t>(0)) continue;
    const Range range = range_of(*matrix[k], file->num_documents());
    if (range.size() == 0) {
      fail(Kind::data, request.prefix, ' ', name(split), ": none of ", file->num_documents(),
           " documents fall to this split, but samples are asked of it; change {data.split}");
    }
    sets[k] = std::make_shared<MaskedDataset>(file, mapping_of(request, *file, split, range), request.rules,
                                              request.vocabulary);
  }
  return sets;
}

}  // namespace weft::data
