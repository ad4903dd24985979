#include "weft/comm/through_host.h"

#include "weft/comm/checks.h"
#include "weft/comm/solo.h"

namespace weft {
namespace {

std::int64_t begin_of(const Tensor& x) { return x.offset() * size_of(x.dtype()); }

/// The word's end: what it made is copied to where it is wanted. Holds what the word reads until then.
Pending ending(Pending word, const Tensor& read, const Tensor& made, const Tensor& wanted) {
  auto under_way = std::make_unique<Pending>(std::move(word));
  return Pending([under_way = std::move(under_way), read = read, made = made, wanted = wanted] {
    under_way->wait();
    if (!wanted || wanted.bytes() == 0) return;
    wanted.device().copy_from_host(*wanted.storage(), begin_of(wanted), made.address(), made.bytes()).wait();
  });
}

}  // namespace

Tensor HostCommunicator::room_for(const char* word, const Tensor& x) const {
  require_contiguous(word, x);
  return empty(host_, x.shape(), x.dtype());
}

Tensor HostCommunicator::brought(const char* word, const Tensor& x) const {
  const Tensor out = room_for(word, x);
  if (x.bytes() > 0) x.device().copy_to_host(out.address(), *x.storage(), begin_of(x), x.bytes()).wait();
  return out;
}

Pending HostCommunicator::all_reduce(const Tensor& x, Reduce how) {
  const Tensor mine = brought("all_reduce", x);
  return ending(inner().all_reduce(mine, how), mine, mine, x);
}

Pending HostCommunicator::all_gather(const Tensor& full, const Tensor& shard) {
  const Tensor mine = brought("all_gather", shard), all = room_for("all_gather", full);
  return ending(inner().all_gather(all, mine), mine, all, full);
}

Pending HostCommunicator::reduce_scatter(const Tensor& shard, const Tensor& full) {
  const Tensor mine = brought("reduce_scatter", full), part = room_for("reduce_scatter", shard);
  return ending(inner().reduce_scatter(part, mine), mine, part, shard);
}

Pending HostCommunicator::all_to_all(const Tensor& out, const Tensor& in,
                                     std::span<const std::int64_t> in_rows,
                                     std::span<const std::int64_t> out_rows) {
  const Tensor mine = brought("all_to_all", in), theirs = room_for("all_to_all", out);
  return ending(inner().all_to_all(theirs, mine, in_rows, out_rows), mine, theirs, out);
}

Pending HostCommunicator::broadcast(const Tensor& x, int root) {
  const Tensor mine = rank() == root ? brought("broadcast", x) : room_for("broadcast", x);
  return ending(inner().broadcast(mine, root), mine, mine, rank() == root ? Tensor() : x);
}

Pending HostCommunicator::send(const Tensor& x, int to, int tag) {
  const Tensor mine = brought("send", x);
  return ending(inner().send(mine, to, tag), mine, mine, {});
}

Pending HostCommunicator::recv(const Tensor& x, int from, int tag) {
  const Tensor mine = room_for("recv", x);
  return ending(inner().recv(mine, from, tag), mine, mine, x);
}

std::unique_ptr<Communicator> HostCommunicator::split(int color, int key) {
  auto words = inner().split(color, key);
  if (words->size() == 1) return std::make_unique<SoloCommunicator>();
  return std::make_unique<HostCommunicator>(std::move(words), host_);
}

}  // namespace weft
