// The loop: train, tell, evaluate, save, stop.
#pragma once

#include "weft/base/clock.h"
#include "weft/base/pulse.h"
#include "weft/train/checkpointing.h"
#include "weft/train/evaluator.h"
#include "weft/train/lent.h"
#include "weft/train/profiler_window.h"
#include "weft/train/teller.h"

namespace weft {

class Trainer {
 public:
  /// config is complete; the data may be shared by many ranks. Both outlive the trainer.
  Trainer(const TrainConfig& config, const RunData& data, const Lent& lent);
  Ending run();
  Trainer(const Trainer&) = delete;  // its parts point at each other
  Trainer& operator=(const Trainer&) = delete;
  Replica& replica() { return replica_; }

 private:
  /// What all ranks agree that any of them was asked for, or cannot read.
  std::optional<Ending> asked_of_any_rank(std::exception_ptr unreadable);
  StepReport take(std::int64_t step);
  std::optional<Ending> must_stop(std::int64_t step);
  /// How the run ended after all, when what is saved stands.
  Ending ended(Ending how);

  /// What is asked of it, apart from its parts.
  struct Loop {
    ExitConfig exit;
    std::int64_t evaluate_every = 0, evaluate_from = 0, save_every = 0;  // steps; 0: not on the way
    bool trains = true, writes_a_sample = false;
  };
  Loop loop_;
  Lent lent_;
  Stopwatch since_start_;
  std::exception_ptr unreadable_;  // what this rank cannot read of the data that come next
  Progress progress_;
  Replica replica_;
  Stepper stepper_;
  Evaluator evaluator_;
  Teller teller_;
  Verifier verifier_;
  Checkpointing checkpoints_;
  Pulse unseen_;
  Pulse& pulse_;  // says where we are, for whoever watches
  ProfilerWindow window_;
};

}  // namespace weft
