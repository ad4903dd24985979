// Which samples a rank reads at which step: pure arithmetic on the number of samples consumed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace weft::data {

/// Who takes what of a global batch. Exact mode takes contiguous: the same batch, other owners.
enum class Owners { megatron, contiguous };

/// One rank's part of a step; ranks are data-parallel ones.
struct SampleTurn {
  int global_batch = 1;
  int micro_batch = 1;
  int rank = 0;
  int ranks = 1;
  Owners owners = Owners::megatron;
  bool operator==(const SampleTurn&) const = default;
};
/// Refuses a global batch that micro batches and ranks do not divide.
void check(const SampleTurn& turn);

/// The samples of one step, microbatch after microbatch. Not for several threads at once: an implementation
/// may keep an epoch's order.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// `consumed` counts samples of the whole run.
  std::vector<std::int64_t> at(std::int64_t consumed, const SampleTurn& turn) const {
    std::vector<std::int64_t> samples;
    list(consumed, turn, samples);
    return samples;
  }
  /// The same, behind those that `into` holds.
  virtual void list(std::int64_t consumed, const SampleTurn& turn, std::vector<std::int64_t>& into) const = 0;
};

/// --dataloader-type single: 0, 1, 2, …, and a refusal at the end of the data.
std::unique_ptr<Sampler> sequential_sampler(std::int64_t total);

/// --dataloader-type cyclic: every epoch in an order of its own, without end. Sharded: each rank shuffles a
/// range of its own.
enum class Sharding { on, off };
std::unique_ptr<Sampler> cyclic_sampler(std::int64_t total, Sharding sharding);

}  // namespace weft::data
