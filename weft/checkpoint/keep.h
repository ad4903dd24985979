// Retention: which old checkpoints to delete, and deleting them so that none is ever half there and trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "weft/base/file.h"
#include "weft/checkpoint/find.h"

namespace weft::checkpoint {

struct KeepRules {
  int last = 1;                    // the newest so many; at least 1
  std::int64_t every = 0;          // and every step that is a multiple; 0: no such rule
  std::vector<std::int64_t> also;  // and these
  /// And so many of the first of these that are there, whose saves did not fail: the best by validation, say.
  std::vector<std::int64_t> ranked;
  int best = 0;
};

/// Those of `complete` (oldest first) that no rule keeps.
std::vector<StepDirectory> surplus(std::span<const StepDirectory> complete, const KeepRules& keep);

/// Deletes surplus steps, and what unfinished saves older than the newest complete step left; returns the
/// steps deleted. A damaged step that has its mark is a person's to judge: it is neither counted nor deleted.
std::vector<std::int64_t> prune(const std::filesystem::path& root, const KeepRules& keep,
                                const FileSystem& files = disk());

}  // namespace weft::checkpoint
