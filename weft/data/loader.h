// A loader that is one step ahead on a thread of its own; all its state is the number of samples consumed.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "weft/data/batch.h"
#include "weft/data/dataset.h"
#include "weft/data/sampler.h"

namespace weft::data {

/// While the caller works on a step, the next one is read, on the guess that it asks for the same turn. A
/// step is a function of the number of samples consumed and of the turn alone: a wrong guess costs time and
/// changes nothing. A failure in the thread is thrown by next().
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, std::unique_ptr<Sampler> sampler, std::int64_t consumed);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The microbatches of the next step that are this turn's, in order.
  [[nodiscard]] std::vector<HostBatch> next(const Turn& turn);
  /// Samples of all ranks in the steps handed out.
  std::int64_t consumed() const { return consumed_; }
  /// Goes to another place, backward or forward.
  void seek(std::int64_t consumed) { consumed_ = consumed; }

 private:
  struct Step {
    std::int64_t consumed = 0;
    Turn turn;
    std::vector<HostBatch> batches;
  };
  Step read(std::int64_t consumed, const Turn& turn) const;

  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Sampler> sampler_;
  std::int64_t consumed_;
  std::int64_t ahead_from_ = -1;  // what ahead_ reads
  Turn ahead_turn_;
  std::future<Step> ahead_;
};

}  // namespace weft::data
