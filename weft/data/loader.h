// A loader that is one step ahead on a thread of its own; all its state is the number of samples consumed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "weft/data/batch.h"
#include "weft/data/dataset.h"
#include "weft/data/sampler.h"

namespace weft::data {

/// While the caller works on a step, the next one is read, on the guess that it asks for the same turn. A
/// step is a function of the number of samples consumed and of the turn alone: a wrong guess costs time and
/// changes nothing. A failure in the thread is thrown by next(). Two steps' memory serves the whole run.
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, std::unique_ptr<Sampler> sampler, std::int64_t consumed);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The microbatches of the next step that are this turn's, in order; until the next call.
  [[nodiscard]] std::span<const HostBatch> next(const SampleTurn& turn);
  /// What next() of this turn will throw; null: nothing. Waits until that step is read.
  [[nodiscard]] std::exception_ptr trouble_ahead(const SampleTurn& turn);
  /// Samples of all ranks in the steps handed out.
  std::int64_t consumed() const { return consumed_; }
  /// Goes to another place, backward or forward.
  void seek(std::int64_t consumed) { consumed_ = consumed; }

 private:
  struct LoadedStep {
    std::int64_t consumed = -1;
    SampleTurn turn;
    std::vector<HostBatch> batches;
  };
  /// Whose the step ahead is: the thread's while it is wanted, the caller's else.
  enum class Ahead : std::uint8_t { nothing, wanted, ready, failed, no_more };

  void read(std::int64_t consumed, const SampleTurn& turn, LoadedStep& into);
  void read_ahead();
  /// Whether the step ahead is what next() of this turn will hand out; it has been read, or could not be.
  bool guessed(const SampleTurn& turn);
  void read_next(const SampleTurn& turn);
  Ahead settled();
  void order(Ahead what);

  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Sampler> sampler_;
  std::int64_t consumed_;
  LoadedStep now_, ahead_;
  std::vector<std::int64_t> numbers_;  // scratch of whoever reads
  Sample sample_;                      // the same
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Ahead state_ = Ahead::nothing;
  std::thread thread_;
};

}  // namespace weft::data
