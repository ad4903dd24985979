// Circles that look at the clock: how long a rank waits for the others, and for which of them.
#pragma once

#include "weft/comm/passing.h"
#include "weft/tensor/instant.h"

namespace weft {

/// Speaks through another, and adds to its account how long the device of what is said is held up by words
/// and waits.
class TimedCommunicator final : public ChargedCommunicator<TimedCommunicator, Spent> {
 public:
  using ChargedCommunicator::ChargedCommunicator;

  Pending all_reduce(const Tensor& x, Reduce how) override;
  Pending all_gather(const Tensor& full, const Tensor& shard) override;
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override;
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override;
  Pending broadcast(const Tensor& x, int root) override;
  Pending send(const Tensor& x, int to, int tag) override;
  Pending recv(const Tensor& x, int from, int tag) override;
  void barrier() override;

 private:
  template <class Word>
  Pending timed(Device& device, const Word& word);
};

}  // namespace weft
