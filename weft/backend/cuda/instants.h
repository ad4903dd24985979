// Places in the stream that computes of which the GPU notes when it came there.
#pragma once

#include "weft/backend/cuda/runtime.h"
#include "weft/tensor/instant.h"

namespace weft::cuda {

class StreamInstants final : public Instants {
 public:
  explicit StreamInstants(int device) : device_(device) {}
  /// Behind all that the stream was asked for.
  int note(const Stream& stream) { return events_.record(stream.get()); }
  bool over(int note) override;
  double seconds_between(int earlier, int later) override;
  void forget(int note) noexcept override { events_.give_back(note); }

 private:
  int device_;
  Events events_{Event::Knows::when};
};

}  // namespace weft::cuda
