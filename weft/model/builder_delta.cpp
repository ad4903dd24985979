// A layer that remembers: key heads are cut over tensor-parallel ranks, and traded by context-parallel ones.
#include <cmath>

#include "weft/base/number.h"
#include "weft/model/builder.h"
#include "weft/nn/delta_memory.h"
#include "weft/ops/elementwise.h"

namespace weft {

std::unique_ptr<Inner> Builder::delta_memory(const std::string& name, int layer) {
  const DeltaConfig& d = config_.delta;
  Communicator* traders = context_.cut() ? context_.circle : nullptr;
  const int ranks = tp_.size() * (traders ? traders->size() : 1);
  MemoryShape shape = d.shape();
  shape.keys = exact(shape.keys, std::int64_t{ranks});
  const NormRows heads{.sums = sums_, .heads = tp_.size() > 1 ? &tp_.circle : nullptr, .traded = traders};
  const NormArgs plain{.kind = config_.norm, .epsilon = float(config_.norm_epsilon)};
  const Tensor unit = empty(device_, {d.key_channels}, Dtype::f32, Use::weights);
  ops::fill(unit, 1 / std::sqrt(double(d.key_channels)));
  return std::make_unique<DeltaMemory>(DeltaMemory::Parts{.in = column(name + ".in", BiasAdded::by_product),
                                                          .filter = rows_of(name + ".filter", tensor_ranks()),
                                                          .speed = rows_of(name + ".speed", tensor_ranks()),
                                                          .shift = rows_of(name + ".shift", tensor_ranks()),
                                                          .norm = norm_of(name + ".norm", heads, plain),
                                                          .project = row(name + ".project"),
                                                          .unit = unit,
                                                          .heads = MemoryHeads(traders)},
                                       shape, layer);
}

}  // namespace weft
