// Shapes of products, for cases that ask for them in every form.
#pragma once

#include <string>
#include <vector>

#include "tests/backend/conformance.h"
#include "weft/base/format.h"
#include "weft/tensor/args.h"

namespace weft::conformance {

struct Sizes {
  std::int64_t m, n, k;
};

inline std::string told(const Sizes& s, Dtype dtype) {
  return text(s.m, " x ", s.n, " x ", s.k, " in ", name(dtype));
}

/// Of an operand [rows, columns], as it lies.
inline Shape held(std::int64_t rows, std::int64_t columns, Read read) {
  return read == Read::as_is ? Shape{rows, columns} : Shape{columns, rows};
}
inline Shape held(std::int64_t batch, std::int64_t rows, std::int64_t columns, Read read) {
  return read == Read::as_is ? Shape{batch, rows, columns} : Shape{batch, columns, rows};
}

/// Groups of which the device alone knows. One that does not take such is told, and so is an oracle.
inline Groups unseen(Desk& desk, const std::vector<std::int64_t>& offsets, Dtype dtype) {
  const std::vector<double> numbers(offsets.begin(), offsets.end());
  const Tensor held = desk.holding({std::ssize(offsets)}, Dtype::i64, numbers);
  return desk.kernels().multiplies_unseen_groups(dtype) ? Groups{{}, held} : Groups{offsets, {}};
}

}  // namespace weft::conformance
