// torchrun's contract: what a worker finds in its environment.
#pragma once

#include <string>

#include "weft/launch/environment.h"
#include "weft/launch/message.h"

namespace weft::launch {

/// One worker of one attempt.
struct Contract {
  const Begin& begin;
  int local_rank = 0;
  std::string address;
  int port = 0;
  std::string run_id, role;
};
void apply(const Contract& contract, Environment& environment);

}  // namespace weft::launch
