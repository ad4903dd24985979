#include "weft/plan/gpu_words.h"

#include "weft/comm/direct.h"
#include "weft/comm/solo.h"

namespace weft {
namespace {

/// Texts that ranks tell one another lie in the host's memory, and nothing of them here.
bool is_the_hosts(const Tensor& x) { return x.device().holds_numbers(); }

}  // namespace

Pending GpuWords::holding(const Tensor& comes, const Tensor& goes) const {
  if (by_ == SpokenBy::hosts_for_gpus) return Pending([comes = comes] {});
  return Pending([comes = comes, goes = goes] {});
}

Tensor GpuWords::parts_for(const Tensor& x, std::int64_t mine, Reduce how) const {
  const bool trees = by_ == SpokenBy::gpus_as_trees;
  const bool exchanged = DirectCommunicator::exchanges(x.dtype(), how, trees);
  if (by_ == SpokenBy::hosts_for_gpus || !exchanged || x.elements() == 0) return {};
  return empty(x.device(), {size(), mine}, x.dtype(), Use::communication);
}

Pending GpuWords::all_reduce(const Tensor& x, Reduce how) {
  if (is_the_hosts(x)) return inner().all_reduce(x, how);
  const DirectCommunicator::Shares shares{x.elements(), size()};
  return holding(x, parts_for(x, shares.count(rank()), how));
}

Pending GpuWords::all_gather(const Tensor& full, const Tensor& shard) {
  return is_the_hosts(full) ? inner().all_gather(full, shard) : holding(full, shard);
}

Pending GpuWords::reduce_scatter(const Tensor& shard, const Tensor& full) {
  if (is_the_hosts(full)) return inner().reduce_scatter(shard, full);
  const Tensor parts = parts_for(full, shard.elements(), Reduce::sum);
  if (by_ == SpokenBy::hosts_for_gpus) return holding(shard, {});
  return Pending([shard = shard, full = full, parts = parts] {});
}

Pending GpuWords::all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                             std::span<const std::int64_t> out_rows) {
  return is_the_hosts(out) ? inner().all_to_all(out, in, in_rows, out_rows) : holding(out, in);
}

// A root has nothing that comes.
Pending GpuWords::broadcast(const Tensor& x, int root) {
  if (is_the_hosts(x)) return inner().broadcast(x, root);
  return rank() == root ? holding({}, x) : holding(x, {});
}

Pending GpuWords::send(const Tensor& x, int to, int tag) {
  return is_the_hosts(x) ? inner().send(x, to, tag) : holding({}, x);
}

Pending GpuWords::recv(const Tensor& x, int from, int tag) {
  return is_the_hosts(x) ? inner().recv(x, from, tag) : holding(x, {});
}

std::unique_ptr<Communicator> GpuWords::split(int color, int key) {
  auto circle = inner().split(color, key);
  if (circle->size() == 1) return std::make_unique<SoloCommunicator>();
  return std::make_unique<GpuWords>(std::move(circle), by_);
}

}  // namespace weft
