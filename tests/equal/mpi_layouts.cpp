// Under mpirun -n 8: trains under the usual cuts over MPI and, as many thread ranks, over threads, and
// compares bits. One model trains in fast mode, the other in exact mode, a third, whose ranks share keys, in
// both.
#include <cstdio>
#include <exception>

#include "tests/equal/run.h"
#include "weft/base/error.h"
#include "weft/comm/mpi.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int few = 3;  // steps

/// On rank 0; the others have nothing to compare.
bool same_as_threads(Communicator& world, const ModelConfig& config, const Cut& cut) {
  const int ranks = ranks_of(cut);
  const bool takes_part = world.rank() < ranks;
  const auto circle = world.split(takes_part ? 0 : 1, world.rank());
  const Curve ours = takes_part ? train_in(*circle, config, cut) : Curve{};
  bool same = true;
  if (world.rank() == 0) {
    const Curve theirs = train(config, cut);
    same =
        ours.losses == theirs.losses && ours.norms == theirs.norms && ours.evaluations == theirs.evaluations;
    if (!same) std::printf("%s: other bits than threads have\n", name_of(cut).c_str());
  }
  world.barrier();
  return same;
}

void compare(Communicator& world) {
  int compared = 0, different = 0;
  for (const bool exact : {false, true}) {
    for (Cut cut : usual_cuts()) {
      if (ranks_of(cut) > world.size()) continue;
      cut.exact = exact;
      cut.steps = few;
      const ModelConfig config = shape_of(exact ? "llama" : "gpt2", cut.parallel.pp > 1 ? 4 : 2);
      ++compared;
      different += same_as_threads(world, config, cut) ? 0 : 1;
    }
    for (Cut cut : {Cut{{.tp = 4, .dp = 2}}, Cut{{.tp = 2, .cp = 2, .dp = 2, .sequence = true}}}) {
      ModelConfig config = shape_of("gpt2", 2);
      config.groups = 1;
      cut.exact = exact;
      cut.steps = few;
      ++compared;
      different += same_as_threads(world, config, cut) ? 0 : 1;
    }
  }
  if (different > 0) fail(Kind::internal, different, " of ", compared, " layouts differ");
  if (world.rank() == 0) std::printf("%d layouts: the bits of threads\n", compared);
}

int tell() {
  try {
    throw;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  return 1;
}

}  // namespace

int main() { run_under_mpi(compare, tell); }
