// A port that a launch tells its workers, and that no other launch on this machine tells its own.
#pragma once

#include "weft/base/descriptor.h"

namespace weft::launch {

struct Ports {
  int first = 0, last = 0;
};
/// Those that the kernel hands out to nobody by itself; all above 10,000 where it keeps too few back.
Ports ports_left_alone();

/// Its number belongs to this launch while `claim` is open. Nothing is bound to it, so that a worker may bind
/// it with or without SO_REUSEADDR.
struct ReservedPort {
  int number = 0;
  Descriptor claim;
};
/// Fails with Kind::device where every port is taken.
ReservedPort reserve_port(Ports among);

}  // namespace weft::launch
