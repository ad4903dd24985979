#include "weft/base/error.h"

namespace weft {

const char* word(Kind kind) {
  switch (kind) {
    case Kind::usage:
      return "usage";
    case Kind::data:
      return "data";
    case Kind::shape:
      return "shape";
    case Kind::device:
      return "device";
    case Kind::comm:
      return "communication";
    case Kind::internal:
      return "internal";
  }
  return "unknown";
}

}  // namespace weft
