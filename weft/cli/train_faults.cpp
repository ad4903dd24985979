// Kills, hangs, slows down and flips a bit, each at its step.
#include "weft/cli/train_faults.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "weft/launch/faults.h"
#include "weft/optim/weights.h"

namespace weft::cli {
namespace {

using launch::Fault;
using launch::FaultKind;

/// The highest bit of the mantissa of a weight in the middle: large enough to be seen, and still a number.
void flip_a_bit(Replica& replica) {
  const Tensor& x = replica.weights().blocks().front().values;
  const std::int64_t unit = size_of(x.dtype()), at = (x.elements() / 2 + x.offset()) * unit + unit - 2;
  std::uint8_t byte = 0;
  x.device().copy_to_host(&byte, *x.storage(), at, 1).wait();
  byte ^= 0x40;
  x.device().copy_from_host(*x.storage(), at, &byte, 1).wait();
}

void strike(const Fault& fault, std::int64_t step, Replica& replica) {
  if (fault.kind == FaultKind::slow && step >= fault.step)
    std::this_thread::sleep_for(std::chrono::milliseconds(fault.ms));
  if (step != fault.step) return;
  if (fault.kind == FaultKind::kill) kill(getpid(), fault.signal);
  if (fault.kind == FaultKind::flip) flip_a_bit(replica);
  while (fault.kind == FaultKind::hang) pause();
}

}  // namespace

std::function<void(std::int64_t, Replica&)> faults_of_rank(const std::string& faults, int rank) {
  if (faults.empty()) return {};
  std::vector<Fault> mine;
  for (const Fault& fault : launch::read_faults("environment: WEFT_INJECT", faults))
    if (fault.rank == rank) mine.push_back(fault);
  if (mine.empty()) return {};
  return [mine](std::int64_t step, Replica& replica) {
    for (const Fault& fault : mine) strike(fault, step, replica);
  };
}

}  // namespace weft::cli
