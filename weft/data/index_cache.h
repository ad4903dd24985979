// Indices kept in files: the same bytes under the same names as Megatron-LM's, so that either reads the
// other's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "weft/data/description.h"
#include "weft/data/index.h"

namespace weft::data {

/// Where a data set keeps its indices unless a folder is given: below its prefix.
std::filesystem::path default_cache_folder(const std::string& prefix, const std::string& kind);

/// The files of one index: FOLDER/MD5-GPTDataset-train-…
class IndexCache {
 public:
  IndexCache(std::filesystem::path folder, const Identity& identity);
  /// Only if all four files are there.
  std::optional<GptIndex> find() const;
  /// Builds the index into its files and maps them, so that little of it is ever in memory. The description
  /// comes last: a cache that is found is whole.
  GptIndex build(const Packed<std::int32_t>& lengths, Range range, const Order& order,
                 const Epochs& epochs) const;
  const std::string& description() const { return description_; }
  std::filesystem::path path(const char* ending) const;

 private:
  std::filesystem::path folder_;
  std::string description_;
  std::string name_;
};

}  // namespace weft::data
