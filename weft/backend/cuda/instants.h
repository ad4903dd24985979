// Places in the stream that computes of which the GPU notes when it came there.
#pragma once

#include <vector>

#include "weft/backend/cuda/runtime.h"
#include "weft/tensor/instant.h"

namespace weft::cuda {

class StreamInstants final : public Instants {
 public:
  explicit StreamInstants(int device) : device_(device) {}
  /// Behind all that the stream was asked for.
  int note(const Stream& stream);
  bool over(int note) override;
  double seconds_between(int earlier, int later) override;
  void forget(int note) noexcept override { idle_.push_back(note); }

 private:
  const Event& event(int note) const { return events_[std::size_t(note)]; }

  int device_;
  std::vector<Event> events_;
  std::vector<int> idle_;  // has room for all
};

}  // namespace weft::cuda
