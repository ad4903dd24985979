#include "weft/comm/timed.h"

#include <memory>

#include "weft/base/clock.h"

namespace weft {

template <class Word>
Pending TimedCommunicator::timed(const Word& word) {
  const Stopwatch watch;
  auto under_way = std::make_unique<Pending>(word());
  *account() += watch.seconds();
  return Pending([under_way = std::move(under_way), seconds = account()] {
    const Stopwatch waiting;
    under_way->wait();
    *seconds += waiting.seconds();
  });
}

Pending TimedCommunicator::all_reduce(const Tensor& x, Reduce how) {
  return timed([&] { return inner().all_reduce(x, how); });
}

Pending TimedCommunicator::all_gather(const Tensor& full, const Tensor& shard) {
  return timed([&] { return inner().all_gather(full, shard); });
}

Pending TimedCommunicator::reduce_scatter(const Tensor& shard, const Tensor& full) {
  return timed([&] { return inner().reduce_scatter(shard, full); });
}

Pending TimedCommunicator::all_to_all(const Tensor& out, const Tensor& in,
                                      std::span<const std::int64_t> in_rows,
                                      std::span<const std::int64_t> out_rows) {
  return timed([&] { return inner().all_to_all(out, in, in_rows, out_rows); });
}

Pending TimedCommunicator::broadcast(const Tensor& x, int root) {
  return timed([&] { return inner().broadcast(x, root); });
}

Pending TimedCommunicator::send(const Tensor& x, int to, int tag) {
  return timed([&] { return inner().send(x, to, tag); });
}

Pending TimedCommunicator::recv(const Tensor& x, int from, int tag) {
  return timed([&] { return inner().recv(x, from, tag); });
}

void TimedCommunicator::barrier() {
  const Stopwatch watch;
  inner().barrier();
  *account() += watch.seconds();
}

}  // namespace weft
