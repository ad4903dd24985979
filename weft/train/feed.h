// The microbatches that this rank works on, step by step.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/data/context_split.h"
#include "weft/data/loader.h"
#include "weft/nn/batch.h"

namespace weft {

/// Reads ahead on a thread, and hands out tensors with the sequence first.
class Feed {
 public:
  struct Place {
    Device& device;
    data::ContextPart context = {};  // which part of every sequence this rank reads
  };
  Feed(std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<data::Sampler> sampler,
       const Place& place, std::int64_t consumed);
  /// The next step's microbatches; valid until the next call.
  std::span<const Batch> next(const data::Turn& turn);
  std::int64_t consumed() const { return loader_.consumed(); }
  void seek(std::int64_t consumed) { loader_.seek(consumed); }

 private:
  void fill(Batch& batch, const data::HostBatch& host);
  Tensor turned(const std::vector<std::int32_t>& rows, std::int64_t b);

  data::Loader loader_;
  Device& device_;
  data::ContextPart context_;
  std::vector<Batch> batches_;
  std::vector<std::int32_t> scratch_;  // one field, sequence first
};

}  // namespace weft
