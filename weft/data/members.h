// What a split of a request is put together from: the data set that a family of models reads from one prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weft/data/dataset.h"
#include "weft/data/description.h"
#include "weft/data/split.h"

namespace weft::data {

/// Samples that are asked for; nothing: all that there are, once.
using SamplesWanted = std::optional<std::int64_t>;

/// Which part of the documents a split takes. Paths for each split leave nothing to share out.
struct Portions {
  Split split = Split::train;
  std::optional<std::string> text = {};
  std::optional<SplitMatrix> matrix = {};
  Portion portion{0.0, 1.0};
};

struct Member {
  std::shared_ptr<const Dataset> set;
  Identity identity;
};

class Members {
 public:
  virtual ~Members() = default;
  /// May be called by several threads at once, each with a prefix of its own.
  virtual Member of(const std::string& prefix, SamplesWanted size) const = 0;
  /// Without files.
  virtual Member made_up(SamplesWanted size) const = 0;
};
using OpenMembers = std::function<std::unique_ptr<Members>(const Portions&)>;

/// The documents of a portion; refuses a split to which none fall, though samples are asked of it.
Range documents_of(const Portions& portions, std::int64_t documents, const std::string& who,
                   SamplesWanted size);

}  // namespace weft::data
