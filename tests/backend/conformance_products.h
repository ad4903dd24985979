// Shapes of products, for cases that ask for them in every form.
#pragma once

#include <string>

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

}  // namespace weft::conformance
