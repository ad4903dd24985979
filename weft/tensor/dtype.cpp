#include "weft/tensor/dtype.h"

#include <ostream>

namespace weft {

const char* name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return "f32";
    case Dtype::bf16:
      return "bf16";
    case Dtype::f16:
      return "f16";
    case Dtype::f8e4m3:
      return "f8e4m3";
    case Dtype::f8e5m2:
      return "f8e5m2";
    case Dtype::f64:
      return "f64";
    case Dtype::i64:
      return "i64";
    case Dtype::i32:
      return "i32";
    case Dtype::u8:
      return "u8";
  }
  return "unknown";
}

std::ostream& operator<<(std::ostream& out, Dtype dtype) { return out << name(dtype); }

}  // namespace weft
