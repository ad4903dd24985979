// A clock around every word, and around the wait for it.
#include "weft/comm/timed.h"

#include "weft/base/clock.h"

namespace weft {

template <class Word>
Pending TimedCommunicator::timed(const Word& word) {
  const Stopwatch watch;
  auto under_way = std::make_unique<Pending>(word());
  *seconds_ += watch.seconds();
  return Pending([under_way = std::move(under_way), seconds = seconds_] {
    const Stopwatch waiting;
    under_way->wait();
    *seconds += waiting.seconds();
  });
}

void TimedCommunicator::charge(const Communicator& circle, double& seconds) {
  for (TimedCommunicator* child : children_)
    if (child == &circle) child->charge_here(seconds);
}

Pending TimedCommunicator::all_reduce(const Tensor& x, Reduce how) {
  return timed([&] { return inner_.all_reduce(x, how); });
}

Pending TimedCommunicator::all_gather(const Tensor& full, const Tensor& shard) {
  return timed([&] { return inner_.all_gather(full, shard); });
}

Pending TimedCommunicator::reduce_scatter(const Tensor& shard, const Tensor& full) {
  return timed([&] { return inner_.reduce_scatter(shard, full); });
}

Pending TimedCommunicator::all_to_all(const Tensor& out, const Tensor& in,
                                      std::span<const std::int64_t> in_rows,
                                      std::span<const std::int64_t> out_rows) {
  return timed([&] { return inner_.all_to_all(out, in, in_rows, out_rows); });
}

Pending TimedCommunicator::broadcast(const Tensor& x, int root) {
  return timed([&] { return inner_.broadcast(x, root); });
}

Pending TimedCommunicator::send(const Tensor& x, int to, int tag) {
  return timed([&] { return inner_.send(x, to, tag); });
}

Pending TimedCommunicator::recv(const Tensor& x, int from, int tag) {
  return timed([&] { return inner_.recv(x, from, tag); });
}

void TimedCommunicator::barrier() {
  const Stopwatch watch;
  inner_.barrier();
  *seconds_ += watch.seconds();
}

std::unique_ptr<Communicator> TimedCommunicator::split(int color, int key) {
  auto child = std::make_unique<TimedCommunicator>(inner_.split(color, key), *seconds_);
  children_.push_back(child.get());
  return child;
}

}  // namespace weft
