// --verify-resume: what was computed at a save is computed again after loading it, and must come out as it
// did.
#pragma once

#include <optional>
#include <string>

#include "weft/train/lent.h"
#include "weft/train/replay.h"
#include "weft/train/resume_settings.h"
#include "weft/train/run_data.h"
#include "weft/train/save.h"
#include "weft/train/stepper.h"

namespace weft {

/// Protocol: expect() after a load; then every step of the run goes through step(), which compares the first,
/// and hands the step after a save to the saver that wrote it.
class Verifier {
 public:
  /// The data are those of training, and in which order they come.
  struct Trained {
    std::shared_ptr<const data::Dataset> set;
    DataConfig order;
  };
  Verifier(Trained train, const Lent& lent, Replica& replica, Stepper& stepper);
  /// The loss of the last batch and the norm of all weights.
  RunWitness witness(const RunPosition& at);
  /// What the first step of this run must be, or why nothing can be said of it; then the witness must do.
  /// `progress` is where the run goes on.
  void expect(const RunFacts& facts, const Kinship& kin, const Progress& progress);
  /// A step, and its record where there is a saver who wants it.
  StepReport step(std::int64_t step, StepTimers* timers, Saver* saver);
  /// A run that leaves early has no use for its weights any more, once they are saved: it takes one step with
  /// them that nobody sees.
  void record_one_more(std::int64_t step, Saver& saver);

 private:
  void verify(const RunFacts& facts, const Kinship& kin);
  std::string not_to_be_replayed(const Kinship& kin, const Progress& progress);
  Replay about_to_do(std::int64_t step) const;
  void did(Replay& replay, const StepReport& report);
  void compare(const Replay& now);
  void say(const std::string& sentence) const;
  Communicator& world() const { return lent_.mesh.world(); }

  Trained train_;
  Lent lent_;
  Replica& replica_;
  Stepper& stepper_;
  struct Expected {
    Replay saved;
    double rounding = 0;
    std::string from;
  };
  std::optional<Expected> expected_;  // how the first step came out before
};

}  // namespace weft
