#include "weft/comm/timed.h"

#include <memory>

#include "weft/tensor/device.h"

namespace weft {

template <class Word>
Pending TimedCommunicator::timed(Device& device, const Word& word) {
  Instant from = device.instant();
  auto under_way = std::make_unique<Pending>(word());
  account()->add({std::move(from), device.instant()});
  return Pending([under_way = std::move(under_way), &device, spent = account()] {
    Instant waits = device.instant();
    under_way->wait();
    spent->add({std::move(waits), device.instant()});
  });
}

Pending TimedCommunicator::all_reduce(const Tensor& x, Reduce how) {
  return timed(x.device(), [&] { return inner().all_reduce(x, how); });
}

Pending TimedCommunicator::all_gather(const Tensor& full, const Tensor& shard) {
  return timed(full.device(), [&] { return inner().all_gather(full, shard); });
}

Pending TimedCommunicator::reduce_scatter(const Tensor& shard, const Tensor& full) {
  return timed(shard.device(), [&] { return inner().reduce_scatter(shard, full); });
}

Pending TimedCommunicator::all_to_all(const Tensor& out, const Tensor& in,
                                      std::span<const std::int64_t> in_rows,
                                      std::span<const std::int64_t> out_rows) {
  return timed(out.device(), [&] { return inner().all_to_all(out, in, in_rows, out_rows); });
}

Pending TimedCommunicator::broadcast(const Tensor& x, int root) {
  return timed(x.device(), [&] { return inner().broadcast(x, root); });
}

Pending TimedCommunicator::send(const Tensor& x, int to, int tag) {
  return timed(x.device(), [&] { return inner().send(x, to, tag); });
}

Pending TimedCommunicator::recv(const Tensor& x, int from, int tag) {
  return timed(x.device(), [&] { return inner().recv(x, from, tag); });
}

void TimedCommunicator::barrier() {
  Instant from;
  inner().barrier();
  account()->add({std::move(from), {}});
}

}  // namespace weft
