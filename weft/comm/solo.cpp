// One rank's collectives are copies, and not even those where the memory is the same.
#include "weft/comm/solo.h"

#include "weft/tensor/kernels.h"

namespace weft {
namespace {

Pending copy_over(const Tensor& to, const Tensor& from) {
  if (to.shape() != from.shape() || to.dtype() != from.dtype())
    fail(Kind::comm, "solo: ", from.shape(), " of ", from.dtype(), " does not fill ", to.shape(), " of ",
         to.dtype());
  const bool same = to.storage() == from.storage() && to.offset() == from.offset();
  if (!same || !to.device().holds_numbers()) to.device().kernels().copy(to, from);
  return {};
}

}  // namespace

Pending SoloCommunicator::all_gather(const Tensor& full, const Tensor& shard) {
  return copy_over(full, shard);
}
Pending SoloCommunicator::reduce_scatter(const Tensor& shard, const Tensor& full) {
  return copy_over(shard, full);
}
Pending SoloCommunicator::all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t>,
                                     std::span<const std::int64_t>) {
  return copy_over(out, in);
}
Pending SoloCommunicator::send(const Tensor&, int to, int) {
  fail(Kind::internal, "solo: there is no rank ", to, " to send to");
}
Pending SoloCommunicator::recv(const Tensor&, int from, int) {
  fail(Kind::internal, "solo: there is no rank ", from, " to receive from");
}
std::unique_ptr<Communicator> SoloCommunicator::split(int, int) {
  return std::make_unique<SoloCommunicator>();
}

}  // namespace weft
