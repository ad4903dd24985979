// The logits of a text under a model that lies on this rank and those it is cut over.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "weft/comm/solo.h"
#include "weft/model/config.h"
#include "weft/model/partition.h"
#include "weft/nn/context_attention.h"
#include "weft/nn/layer.h"
#include "weft/nn/linear.h"
#include "weft/pipe/runner.h"

namespace weft {

/// How the stages of a model lie over the ranks of a pipeline.
struct PipelineHere {
  std::vector<int> home;  // the rank of each stage
  std::vector<StagePart> parts;
  Communicator& circle;
  Dtype dtype = Dtype::f32;  // of what stages hand on beside hidden states
};

/// A model on this rank. Every rank that it is cut over takes part.
struct ModelHere {
  const std::map<int, Stage>& stages;  // that live here, by number
  const ModelConfig& config;
  TensorParallel tp;
  Device& device;
  ContextParallel context = {};
  const PipelineHere* pipeline = nullptr;  // none: stage 0 is all of it
};

/// Whether a text may be read token by token: no layer looks at how many tokens come at once.
bool may_read_on(const ModelConfig& config);

/// Reads one text after another, through the stages that training walks; weights stay as they are as long as
/// it lives. Of a text that begins with all of the one before only the rest is read, where a model may be
/// read so.
class TextReader {
 public:
  explicit TextReader(const ModelHere& model);
  TextReader(const TextReader&) = delete;  // the runner holds the schedule
  TextReader& operator=(const TextReader&) = delete;
  /// What may follow each of the last `count` tokens, or stand there where a family guesses hidden words:
  /// [count, vocabulary], the same on every rank. An encoder reads `source`, once as long as that stays the
  /// same: what the decoder's layers make of its output is kept.
  std::vector<float> logits(std::span<const std::int32_t> tokens, std::int64_t count,
                            std::span<const std::int32_t> source = {});

 private:
  Communicator& circle() { return model_.pipeline ? model_.pipeline->circle : alone_; }
  std::vector<pipe::Parcel> parcels(const Batch& batch) const;
  std::vector<float> told_by_the_last(const std::vector<float>& mine);

  ModelHere model_;
  SoloCommunicator alone_;
  pipe::Schedule schedule_;
  pipe::Runner runner_;
  /// How many of these tokens need not be read again.
  std::int64_t known_of(std::span<const std::int32_t> tokens, std::int64_t count) const;

  std::vector<std::int32_t> source_;  // that was read before
  Encoded encoded_;                   // and what is known of it
  std::vector<std::int32_t> read_;    // of the text
  Earlier earlier_;                   // and what layers made of that
  bool keeps_ = false;
};

/// A model that is never whole in memory: `with` makes a part of it, hands it over, and takes it away.
struct ModelInParts {
  const ModelConfig& config;
  TensorParallel tp;
  Device& device;
  using Use = std::function<void(const Stage&)>;
  std::function<void(const StagePart&, const Use&)> with;
};

/// The same numbers, from embedding, layers and head one after the other. An encoder reads the same tokens.
std::vector<float> logits_of(const ModelInParts& model, std::span<const std::int32_t> tokens,
                             std::int64_t count);

}  // namespace weft
