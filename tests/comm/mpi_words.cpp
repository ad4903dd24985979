// Under mpirun: speaks every word over MPI and, as many thread ranks, over threads, and compares bits.
// `mpi_words fail` lets rank 1 fail while others wait for it.
#include <cstdio>
#include <exception>
#include <string_view>

#include "tests/support/all_words.h"
#include "weft/base/error.h"
#include "weft/comm/mpi.h"
#include "weft/comm/threads.h"

using namespace weft;
using weft::testing::Bytes;
using weft::testing::speak;

namespace {

void compare(Communicator& world) {
  Bytes expected;
  run_as_threads(world.size(), [&](Communicator& threads) {
    Bytes said = speak(threads);
    if (threads.rank() == world.rank()) expected = std::move(said);
  });
  const Bytes said = speak(world);
  if (said != expected || said.empty()) fail(Kind::comm, "rank ", world.rank(), ": MPI and threads differ");
  if (world.rank() == 0) std::printf("%d ranks: %zu bytes are those of threads\n", world.size(), said.size());
}

void fail_midway(Communicator& world) {
  weft::testing::PlainDevice device;
  const Tensor x = empty(device, {1 << 20});
  Pending pending = world.all_reduce(x, Reduce::sum);
  if (world.rank() == 1) fail(Kind::data, "sample 17 is torn");
  pending.wait();
  world.barrier();
}

void differ(Communicator& world) {
  weft::testing::PlainDevice device;
  world.broadcast(empty(device, {world.rank() == 0 ? 4 : 6}), 0).wait();
}

int tell() {
  try {
    throw;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::fflush(stderr);
  }
  return 7;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  run_under_mpi(what == "fail" ? fail_midway : what == "differ" ? differ : compare, tell);
}
