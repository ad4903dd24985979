// What words between ranks hold and take of a GPU's memory, in circles in which nobody answers.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/comm/passing.h"

namespace weft {

/// Who says what ranks have to say. Between hosts, whatever they say is held until it was waited for.
enum class SpokenBy : std::uint8_t {
  hosts,
  hosts_for_gpus,  // whose tensors are copied there (comm/through_host.h)
  gpus,            // by lines that add f32 in an order of theirs (comm/direct.h)
  gpus_as_trees
};

/// Words of a device that holds no numbers, as a GPU's are said.
class GpuWords final : public PassingCommunicator {
 public:
  GpuWords(Communicator& inner, SpokenBy by) : PassingCommunicator(inner), by_(by) {}
  GpuWords(std::unique_ptr<Communicator> inner, SpokenBy by)
      : PassingCommunicator(std::move(inner)), by_(by) {}

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
  /// Until it is waited for: what comes, and between GPUs what goes.
  Pending holding(const Tensor& comes, const Tensor& goes) const;
  /// Of a sum over x that ranks exchange the terms of; none where lines add.
  Tensor parts_for(const Tensor& x, std::int64_t mine, Reduce how) const;

  SpokenBy by_;
};

}  // namespace weft
