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
  /// The description comes last, so a cache that is found is whole.
  void store(const GptIndex& index) const;
  const std::string& description() const { return description_; }
  std::filesystem::path path(const char* ending) const;

 private:
  std::filesystem::path folder_;
  std::string description_;
  std::string name_;
};

}  // namespace weft::data
