// Key heads of a layer that remembers, each walked over a whole sequence: ranks that share sequences trade
// them.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/tensor/tensor.h"

namespace weft {

class MemoryHeads {
 public:
  /// null: nobody shares sequences
  explicit MemoryHeads(Communicator* traders) : traders_(traders) {}
  bool traded() const { return traders_ != nullptr; }
  /// Of a parameter, or of its gradient, what belongs to the heads that are walked over here.
  Tensor rows(const Tensor& all) const;
  /// Of a product [s/c, b, keys of c ranks times width]: [s, b, keys, width]
  Tensor whole(const Tensor& made, std::int64_t width) const;
  /// x [s, b, keys, ..] -> [s/c, b, all that the keys of c ranks have]
  Tensor steps(const Tensor& x) const;

 private:
  Communicator* traders_;
};

}  // namespace weft
