#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "weft/exchange/megatron/checkpoint.h"
#include "weft/exchange/megatron/flat_layout.h"
#include "weft/exchange/megatron/items.h"

namespace weft::exchange::megatron {

/// What an index says of the distributed optimizer's flat buffers.
struct FlatKeys {
  /// Whose: of which optimizer, of which group of ranks.
  using Owner = std::pair<std::int64_t, std::int64_t>;
  struct Place {
    std::int64_t buffer = 0, bucket = 0;
    auto operator<=>(const Place&) const = default;
  };
  /// dp_reshardable: a tensor for each state of a bucket.
  std::map<Owner, std::map<Place, std::array<std::string, state_names.size()>>> buckets;
  /// dp_zero_gather_scatter: an object for all buffers.
  std::map<Owner, std::string> objects;
  std::string groups;  // the first optimizer's settings

  bool empty() const { return buckets.empty() && objects.empty(); }
};
FlatKeys flat_keys_of(const Items& items);

/// Finds whose they are.
States settle_flat(const Checkpoint& checkpoint, Items& items);

/// Such an object, which distrib_optim.pt holds, too: one optimizer's buffers of one group of ranks. What is
/// returned says what is not read; it is empty where all is.
std::string add_joined(std::map<std::int64_t, FlatBuffer>& to, const torch::Archive& archive,
                       const torch::Value& state, const std::string& who);

/// How many numbers fill a bucket, by the arguments; that first which they speak for.
std::array<std::int64_t, 2> bucket_sizes(const Arguments& args);

}  // namespace weft::exchange::megatron
