#include "weft/exchange/torch/unpickle.h"

#include "weft/exchange/torch/machine.h"

namespace weft::exchange::torch {

Value unpickled(std::span<const std::byte> bytes, const std::string& who) {
  Place place{who, "", 0};
  return Machine(bytes, place, {}).run();
}

}  // namespace weft::exchange::torch
