// A run's checkpoints: taking it up where one left it, and saving where it stands.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "weft/train/lent.h"
#include "weft/train/progress.h"
#include "weft/train/save.h"
#include "weft/train/suspicion.h"
#include "weft/train/verifier.h"

namespace weft {

/// What of a run its checkpoints hold and set.
struct Checkpointed {
  Replica& replica;
  Progress& progress;
  Stepper& stepper;
  Verifier& verifier;
};

class Checkpointing {
 public:
  /// The whole configuration is written down and compared.
  Checkpointing(const TrainConfig& config, const Lent& lent, const Checkpointed& run);
  /// Before the first step: loads what is to be loaded, and makes ready to save.
  void open();
  void save_if_due(std::int64_t step, bool last);
  /// A step whose result is refused: what is before it is saved, and what is suspected of it lies beside
  /// that.
  void refused(const Refused& why, std::int64_t step);
  /// Who wants the record of this step, because it saved the one before it and --verify-resume was given;
  /// null: nobody.
  Saver* wants_record_of(std::int64_t step) const;
  /// When the last step was taken: waits for what is being written. How the run ended after all.
  Ending ended(Ending how);

 private:
  std::vector<std::int64_t> take_up();
  void restore(const RunFacts& facts);
  std::int64_t steps_after(const RunPosition& at) const;
  RunFacts facts_after(std::int64_t step);
  void save(std::int64_t step);
  void tell_saved();
  double flops_of(std::int64_t steps, std::int64_t samples) const;
  void take_up_suspicion(const std::filesystem::path& from);
  std::vector<std::string> machines() const;
  bool tells() const { return lent_.mesh.world().rank() == 0; }

  const TrainConfig& config_;
  Lent lent_;
  Checkpointed run_;
  RunTokenizer tokenizer_;
  RunPosition position_;  // what the last checkpoint said
  std::unique_ptr<Saver> saver_;
  std::optional<std::int64_t> saved_at_;
  std::filesystem::path suspicious_;  // the step that was loaded, if something is suspected of the next
  std::int64_t told_saved_ = 0;
  struct Read {
    std::int64_t samples = 0, tokens = 0;
  };
  std::map<std::int64_t, Read> read_at_save_;  // by step
  std::int64_t samples_before_job_ = 0;
};

}  // namespace weft
