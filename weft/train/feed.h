// The microbatches that this rank works on, step by step.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "weft/data/context_split.h"
#include "weft/data/excerpt.h"
#include "weft/data/loader.h"
#include "weft/data/look_ahead.h"
#include "weft/model/kind.h"

namespace weft {

class Replica;
struct DataConfig;

/// Reads ahead on a thread, and hands out tensors with the sequence first.
class Feed {
 public:
  struct Intake {
    Device& device;
    std::span<const BatchField> fields;  // what the model reads
    data::ContextPart context = {};      // which part of every sequence this rank reads
    std::int64_t most_guesses = 0;       // of a sample (ModelConfig says how many)
    bool one_by_one = false;             // every row is a microbatch
    data::LookAhead ahead = {};          // where tokens beyond the next one are guessed
  };
  Feed(std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<data::Sampler> sampler,
       const Intake& place, std::int64_t consumed);
  /// The next step's microbatches, of so much of their samples; valid until the next call. Where rows come
  /// one by one, pieces of a sample follow each other.
  std::span<const Batch> next(const data::SampleTurn& turn, const data::Excerpt& excerpt = {});
  /// What next() will throw because it cannot be read; null: nothing. Waits until it is read.
  std::exception_ptr trouble_ahead(const data::SampleTurn& turn) { return loader_.trouble_ahead(turn); }
  std::int64_t consumed() const { return loader_.consumed(); }
  void seek(std::int64_t consumed) { loader_.seek(consumed); }

 private:
  void make(Batch& batch, const data::HostBatch& whole);
  const data::HostBatch& excerpt_of(const data::HostBatch& whole, const data::Excerpt& excerpt);
  const data::HostBatch& part_of(const data::HostBatch& whole);
  /// The part of every sequence that is this rank's.
  void fill(Batch& batch, const data::HostBatch& host);
  void look_ahead(Batch& batch, const data::HostBatch& whole);
  void gather_guesses(Batch& batch, const data::HostBatch& host) const;
  const std::vector<std::int32_t>& field_for(Tensor& tensor, Batch& batch, const data::HostBatch& host) const;
  void place(Sequences& sequences, std::int64_t b);
  Tensor tensor_of(const BatchField& field, const data::HostBatch& host);
  template <class T>
  Tensor turned(const std::vector<std::int32_t>& rows, std::int64_t b, std::vector<T>& scratch);

  data::Loader loader_;
  Device& device_;
  std::span<const BatchField> fields_;
  data::ContextPart context_;
  std::int64_t most_guesses_;
  bool one_by_one_;
  data::LookAhead ahead_;
  std::vector<Batch> batches_;
  data::HostBatch excerpt_;            // of a microbatch, where samples are not read whole
  data::HostBatch row_;                // one of its rows, where they come one by one
  data::HostBatch further_;            // the same, some places on
  data::HostBatch part_;               // the same, where the sequence is cut
  std::vector<std::int32_t> scratch_;  // one field, sequence first
  std::vector<float> counts_;          // the same, of the loss mask
  std::vector<std::int32_t> positions_;
};

/// Where the samples of such data go that a replica reads, and what of them.
Feed::Intake place_of(const Replica& replica, const DataConfig& data);

}  // namespace weft
