// Which elements of [s, b, h] dropout keeps, by their addresses.
#pragma once

#include <span>
#include <vector>

#include "weft/tensor/args.h"

namespace weft::reference {

class Dropped {
 public:
  explicit Dropped(const DropoutArgs& how);
  /// row = the elements at step s of row b of the batch; number = s * b's size + b.
  void apply(std::int64_t number, std::span<double> row) const;

 private:
  DropoutArgs how_;
  std::vector<Draw> draws_;  // one for each row of the batch
  std::vector<double> positions_;
  std::uint32_t threshold_;
  double factor_;
};

}  // namespace weft::reference
