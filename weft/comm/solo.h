// The circle of one: every word is the identity, so nobody needs to ask whether there is company.
#pragma once

#include "weft/comm/communicator.h"

namespace weft {

class SoloCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* carrier() const override { return "nobody else"; }
  void barrier() override {}
  Pending all_reduce(const Tensor&, Reduce) override { return {}; }
  Pending all_gather(const Tensor& full, const Tensor& shard) override;
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override;
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override;
  Pending broadcast(const Tensor&, int) override { return {}; }
  Pending send(const Tensor& x, int to, int tag) override;
  Pending recv(const Tensor& x, int from, int tag) override;
  std::unique_ptr<Communicator> split(int color, int key) override;
};

}  // namespace weft
