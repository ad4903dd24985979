// Ranks whose devices keep their memory to themselves, as GPUs do, speak through the host: what they say is
// copied there, said by another circle, and copied back.
#pragma once

#include "weft/comm/passing.h"

namespace weft {

/// Sums are those of the circle it speaks by, so they have its bits. The host waits for the device where a
/// word begins, and for the other ranks where its result is waited for. A circle of one that is split off has
/// nothing to say, and its memory stays where it is. `words` and `host`, whose memory the
/// host reads, outlive it and every word.
class HostCommunicator final : public PassingCommunicator {
 public:
  HostCommunicator(Communicator& words, Device& host) : PassingCommunicator(words), host_(host) {}
  /// Of a circle that lives as long as this.
  HostCommunicator(std::unique_ptr<Communicator> words, Device& host)
      : PassingCommunicator(std::move(words)), host_(host) {}

  Pending all_reduce(const Tensor& x, Reduce how) override;
  Pending all_gather(const Tensor& full, const Tensor& shard) override;
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override;
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override;
  Pending broadcast(const Tensor& x, int root) override;
  Pending send(const Tensor& x, int to, int tag) override;
  Pending recv(const Tensor& x, int from, int tag) override;
  std::unique_ptr<Communicator> split(int color, int key) override;

 private:
  /// Room of the host for x; and with its numbers.
  Tensor room_for(const char* word, const Tensor& x) const;
  Tensor brought(const char* word, const Tensor& x) const;

  Device& host_;
};

}  // namespace weft
