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

/// Calls use(micro, k, place) for each sample of the turn: the k-th of its micro batch, at which place of the
/// global batch.
template <class Use>
void each_place(const SampleTurn& turn, const Use& use) {
  const std::int64_t micros = turn.global_batch / (turn.micro_batch * turn.ranks);
  const std::int64_t mine = micros * turn.micro_batch;
  for (std::int64_t micro = 0; micro < micros; ++micro) {
    const std::int64_t first = turn.owners == Owners::megatron
                                   ? (micro * turn.ranks + turn.rank) * turn.micro_batch
                                   : turn.rank * mine + micro * turn.micro_batch;
    for (std::int64_t k = 0; k < turn.micro_batch; ++k) use(micro, k, first + k);
  }
}

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
