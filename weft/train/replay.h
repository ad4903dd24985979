// The step after a save, as it was done: what a run that goes on from the checkpoint must do again, bit by
// bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/comm/communicator.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/weights.h"

namespace weft {

/// A tensor in three numbers that do not depend on how it is cut: a digest of every bit, the sum of squares,
/// and the sum under signs drawn for each place, which tells a tensor from the same numbers elsewhere.
struct TensorMark {
  std::int64_t elements = 0;
  std::uint64_t digest = 0;
  double square = 0, sketch = 0;
};
using TensorMarks = std::map<std::string, TensorMark>;

/// A loss as it was told.
struct ReplayedLoss {
  std::string name;
  double mean = 0;
};

struct Replay {
  std::int64_t step = 0, first_sample = 0, batch = 0;
  double rate = 0, ends_rate = 0, decay = 0;
  bool skipped = false, applied = true;
  std::vector<ReplayedLoss> losses;  // none unless it was applied
  double grad_norm = 0;              // 0 unless it was applied
  TensorMarks tensors;               // weights and optimizer states after it
};

/// Every rank of `world` calls it and gets the same. Reads all that a checkpoint would hold.
TensorMarks marks_of(const Weights& weights, const Optimizer& optimizer, Communicator& world);

/// Puts the record of the step that follows into a complete step's directory, bound to what lies there.
void write_replay(const std::filesystem::path& step, const Replay& replay, const FileSystem& files);
/// Fails with Kind::data where there is none, or one that is damaged or of another checkpoint.
Replay read_replay(const std::filesystem::path& step);

std::string to_json(const Replay& replay, const Hash& checkpoint);
Replay replay_from_json(std::string_view json, const Hash& checkpoint, const std::string& who);

/// Why the step that is to be done now is another one; empty where it is the same.
std::string another_step(const Replay& saved, const Replay& now);
/// What came out otherwise, as a sentence; empty where nothing did. `rounding` 0 asks for every bit;
/// otherwise it is the part by which a loss may differ, and gradients by ten times as much.
std::string difference(const Replay& saved, const Replay& now, double rounding);

}  // namespace weft
