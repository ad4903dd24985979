// A state space: groups of heads are cut over tensor-parallel ranks, and traded by context-parallel ones.
#include "weft/base/number.h"
#include "weft/model/builder.h"
#include "weft/nn/state_memory.h"

namespace weft {

std::unique_ptr<Inner> Builder::state_memory(const std::string& name, int layer) {
  Communicator* traders = context_.cut() ? context_.circle : nullptr;
  MemoryShape shape = config_.state.shape();
  shape.keys = exact(shape.keys, std::int64_t{tp_.size()} * (traders ? traders->size() : 1));
  const auto rows = [&](const char* part) { return rows_of(name + part, tensor_ranks()); };
  const NormArgs norm{.kind = NormKind::rms, .epsilon = float(config_.state.norm_epsilon)};
  ColumnLinear in = column(name + ".in", BiasAdded::by_product);
  in.each_parameter([](Parameter& p) { p.role = Role::mixed; });
  return std::make_unique<StateMemory>(StateMemory::Parts{.in = std::move(in),
                                                          .filter = rows(".filter"),
                                                          .filter_bias = rows(".filter_bias"),
                                                          .speed = rows(".speed"),
                                                          .shift = rows(".shift"),
                                                          .skip = rows(".skip"),
                                                          .gain = rows(".norm.gain"),
                                                          .norm = norm,
                                                          .project = row(name + ".project"),
                                                          .heads = MemoryHeads(traders)},
                                       shape, layer);
}

}  // namespace weft
