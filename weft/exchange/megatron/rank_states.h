// What optimizers keep in files of ranks: in rows, or by the numbers of parameters.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/exchange/megatron/checkpoint.h"
#include "weft/exchange/megatron/cuts.h"

namespace weft::exchange::megatron {

struct Rank {
  std::int64_t tp = 0, pp = 0, ep = 0;
};
struct RankFile {
  Rank rank;
  const torch::Archive* archive;
  std::string who;
  /// Names of its parameters in the whole model, in the order of its modules; a list for each virtual stage.
  std::vector<std::vector<std::string>> names;
};

/// Whether there is anything of the kind.
bool has_states(const std::vector<RankFile>& files);
/// Finds whose they are. Files that are opened for it go to `open`, and must live as long as what is found.
struct OpenFiles {
  std::vector<std::unique_ptr<MappedFile>> files;
  std::vector<std::unique_ptr<torch::Archive>> archives;
};
States settle_ranks(const Checkpoint& checkpoint, const std::vector<RankFile>& files, OpenFiles& open);

}  // namespace weft::exchange::megatron
