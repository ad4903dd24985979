// From flags to data sets: training, validation and test, plain or blended, stored or keyed order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/data/blend.h"
#include "weft/data/conversation_dataset.h"
#include "weft/data/dataset.h"
#include "weft/data/gpt_dataset.h"
#include "weft/data/index.h"
#include "weft/data/masked_dataset.h"
#include "weft/data/members.h"
#include "weft/data/split.h"

namespace weft::data {

enum class DataOrder { megatron, keyed };
enum class ValidationSets { blended, separate };  // --multiple-validation-sets

/// Where data comes from. One of: the same prefixes for all splits, prefixes for each split, mock data.
struct DataPaths {
  std::optional<BlendArguments> shared;
  std::array<std::optional<BlendArguments>, 3> per_split;
  bool mock = false;
};

/// The flags as given, before it is decided which of them count.
struct DataPathFlags {
  std::vector<std::string> data_path;
  std::optional<std::string> data_args_path;
  std::array<std::vector<std::string>, 3>
      split_paths;  // --train-data-path, --valid-data-path, --test-data-path
  std::optional<std::string> per_split_data_args_path;
  bool mock = false;
};
/// Refuses two sources at once, object storage, and nothing at all where mock data was not asked for.
DataPaths data_paths(const DataPathFlags& flags);

struct DataRequest {
  DataPaths paths;
  std::optional<std::string> split;  // nothing: 969, 30, 1; with a path for each split it must be nothing
  std::array<std::optional<std::int64_t>, 3> sizes;  // sample_counts(); 0: that split is not opened
  std::int64_t exact_epochs = 0;  // of training: so many of each file's documents; 0: as many as it takes
  std::uint32_t seed = 1234;
  LastSample last_valid = LastSample::dropped;
  DataOrder order = DataOrder::megatron;
  ValidationSets validation = ValidationSets::blended;
  TokenFile::Access access = TokenFile::Access::mapped;
  Surplus surplus = Surplus::members;
  std::optional<std::string> cache_path;  // nothing: below each prefix
  std::string tokenizer = "{}";           // tokenizer_identity()
  std::int32_t mock_vocabulary = 0;
};

/// A split that is not opened is empty; validation holds several sets where they are separate.
struct Datasets {
  std::array<std::vector<std::shared_ptr<const Dataset>>, 3> of;
  /// The one set of a split, or nothing.
  std::shared_ptr<const Dataset> operator[](Split split) const {
    const auto& sets = of[static_cast<std::size_t>(split)];
    return sets.empty() ? nullptr : sets.front();
  }
};

/// The data sets of all splits, of members that `open` makes of one prefix each.
Datasets open_datasets(const DataRequest& request, const OpenMembers& open);

Datasets open_gpt_datasets(const DataRequest& request, const GptRows& rows);
/// BERT's or T5's; their mappings are cached under Megatron's names.
Datasets open_masked_datasets(const DataRequest& request, const MaskedRules& rules,
                              const MaskedVocabulary& vocabulary);
/// Files of JSON lines with conversations; nothing is cached but what a blend reads in turn.
Datasets open_conversation_datasets(const DataRequest& request, const ConversationRules& rules);

}  // namespace weft::data
