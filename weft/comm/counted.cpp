#include "weft/comm/counted.h"

#include <numeric>

#include "weft/base/number.h"

namespace weft {

std::int64_t Sent::total() const { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }

Pending CountedCommunicator::all_reduce(const Tensor& x, Reduce how) {
  count(Traffic::sums, others_part(2 * x.bytes()));
  return inner().all_reduce(x, how);
}

Pending CountedCommunicator::all_gather(const Tensor& full, const Tensor& shard) {
  count(Traffic::gathered, others_part(full.bytes()));
  return inner().all_gather(full, shard);
}

Pending CountedCommunicator::reduce_scatter(const Tensor& shard, const Tensor& full) {
  count(Traffic::sums, others_part(full.bytes()));
  return inner().reduce_scatter(shard, full);
}

Pending CountedCommunicator::all_to_all(const Tensor& out, const Tensor& in,
                                        std::span<const std::int64_t> in_rows,
                                        std::span<const std::int64_t> out_rows) {
  const std::int64_t rows = in.rank() > 0 ? in.dim(0) : 0;
  std::int64_t others = 0;
  for (std::size_t r = 0; r < in_rows.size(); ++r)
    if (int(r) != rank()) others += in_rows[r];
  if (rows > 0) count(Traffic::traded, others * exact(in.bytes(), rows));
  return inner().all_to_all(out, in, in_rows, out_rows);
}

Pending CountedCommunicator::broadcast(const Tensor& x, int root) {
  if (root == rank() && size() > 1) count(Traffic::handed_on, x.bytes());
  return inner().broadcast(x, root);
}

Pending CountedCommunicator::send(const Tensor& x, int to, int tag) {
  count(Traffic::handed_on, x.bytes());
  return inner().send(x, to, tag);
}

}  // namespace weft
