// The loop: build, train, tell, evaluate, stop.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "weft/base/clock.h"
#include "weft/base/log.h"
#include "weft/mesh/mesh.h"
#include "weft/report/outlet.h"
#include "weft/train/batch_size.h"
#include "weft/train/feed.h"
#include "weft/train/replay.h"
#include "weft/train/replica.h"
#include "weft/train/run_data.h"
#include "weft/train/save.h"
#include "weft/train/save_facts.h"
#include "weft/train/schedules.h"
#include "weft/train/spikes.h"

namespace weft {

/// Why a run ended.
enum class Ending { finished, asked, out_of_time, unsaved };  // unsaved: the last checkpoint failed

/// What a run is lent.
struct Lent {
  Device& device;
  const ProcessMesh& mesh;
  const Log& log;
  report::Outlet* outlet = nullptr;                  // rank 0's; the others tell nothing
  const std::atomic<bool>* asked_to_stop = nullptr;  // set by whoever hears signals
  const FileSystem* files = nullptr;                 // what checkpoints are written through; null: the disk
};

class Trainer {
 public:
  /// config is complete; the data may be shared by many ranks. Both outlive the trainer.
  Trainer(const TrainConfig& config, const RunData& data, const Lent& lent);
  ~Trainer();
  Ending run();
  Replica& replica() { return replica_; }

 private:
  struct Interval;  // what adds up between two lines of the log
  void build();
  Feed::Place feed_place() const;
  StepOrder order_of(std::int64_t step) const;
  enum class NotFinite : std::uint8_t { looked_for, passed_over };
  StepReport one_step(std::int64_t step, NotFinite trouble = NotFinite::looked_for);

  // Results that cannot be: trainer_guard.cpp.
  StepReport not_finite(std::int64_t step, const StepReport& report, std::span<const Batch> batches);
  std::optional<StepReport> done_again(std::int64_t step, const StepReport& report,
                                       std::span<const Batch> batches);
  enum class Trial : std::uint8_t { first, second };
  bool fault_is_injected(std::int64_t step, Trial trial) const;
  void compare_copies(std::int64_t step) const;

  void tell(std::int64_t step, const StepReport& report);
  report::Step record_of(std::int64_t step, const StepReport& report, const Interval& sum) const;
  void watch_loss(std::int64_t step, const StepReport& report);
  void tell_times(std::int64_t step, std::int64_t steps);
  void tell_memory(std::int64_t step) const;
  void tell_memory_of_ranks() const;
  /// False where it was broken off, as the run must stop.
  bool evaluate(std::int64_t step, data::Split split, const std::string& of);
  bool evaluate_set(const std::shared_ptr<const data::Dataset>& given, std::int64_t& consumed,
                    report::Evaluation& into);
  std::string name_of_set(data::Split split, std::size_t number) const;
  std::optional<Ending> asked_of_any_rank() const;
  std::optional<Ending> must_stop(std::int64_t step) const;
  data::Turn turn_at(std::int64_t consumed) const;
  data::Turn evaluation_turn() const;
  bool step_is_skipped(std::int64_t step) const;
  std::optional<Evaluation> evaluated(Feed& feed, const data::Turn& turn, std::int64_t rounds);

  // Checkpoints: trainer_resume.cpp.
  void open_checkpoints();
  std::vector<std::int64_t> take_up();
  void restore(const RunFacts& facts);
  std::int64_t steps_after(const RunPosition& at) const;
  RunFacts facts_after(std::int64_t step);
  void save(std::int64_t step);
  void save_if_due(std::int64_t step, bool last);
  void tell_saved();
  Ending ended(Ending how);
  RunWitness witness(const RunPosition& at);
  void verify(const RunFacts& facts, const std::string& from);

  // The step after a save: trainer_replay.cpp.
  void expect_replay(const RunFacts& facts, const std::string& from);
  std::string not_to_be_replayed(const RunFacts& facts, const std::string& from);
  double rounding_between(const RunFacts& facts) const;
  Replay about_to_do(std::int64_t step) const;
  void did(Replay& replay, const StepReport& report);
  StepReport watched_step(std::int64_t step);
  void compare_replay(const Replay& now);
  void record_one_more(std::int64_t step);

  const TrainConfig& config_;
  const RunData& data_;
  Lent lent_;
  BatchSchedule batches_;
  std::int64_t steps_;
  RatePlan rate_, ends_rate_;
  DecaySchedule decay_;
  Replica replica_;
  std::unique_ptr<Feed> feed_;
  std::map<data::Split, std::int64_t> evaluated_;  // samples of each set that evaluations have used
  std::unique_ptr<Interval> interval_, alone_;     // since the last line; since the last step
  SpikeWatch spikes_;
  StepTimers timers_;
  Stopwatch since_start_;
  std::int64_t learned_samples_ = 0;  // of steps that were applied: what the schedules count
  std::int64_t skipped_samples_ = 0;
  std::int64_t first_step_ = 1;
  struct Validated {
    std::int64_t step = 0;
    double loss = 0;
  };
  std::optional<Validated> validated_;
  RunTokenizer tokenizer_;
  RunPosition position_;  // what the last checkpoint said, and the size of the last batch
  std::unique_ptr<Saver> saver_;
  std::int64_t saved_at_ = 0, told_saved_ = 0;
  std::map<std::int64_t, std::int64_t> samples_at_save_;  // by step
  std::int64_t samples_before_job_ = 0;
  struct Expected {
    Replay saved;
    double rounding = 0;
    std::string from;
  };
  std::optional<Expected> expected_;  // --verify-resume: how the first step came out before
};

}  // namespace weft
