// What a run reads: from its configuration to a tokenizer, data sets and the order of samples.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/data/open.h"
#include "weft/data/sampler.h"
#include "weft/text/tokenizer.h"
#include "weft/train/batch_size.h"

namespace weft {

struct RunData {
  std::shared_ptr<const Tokenizer> tokenizer;  // null: mock data of a bare vocabulary
  data::Datasets sets;
  RunLength length;
};

/// The tokenizer that settings name, of so many words where these do not say it; null where they name none.
std::shared_ptr<const Tokenizer> run_tokenizer(const TokenizerConfig& config, std::int64_t vocabulary);
/// A sentence for each tokenizer setting that was given and that its type does not read.
std::vector<std::string> unread_tokenizer_settings(const TokenizerConfig& config, std::int64_t vocabulary);
/// Whether a model tells conversations of a sample apart. Layers that remember do not, so a sample of theirs
/// is of one.
bool parts_conversations(const ModelConfig& model);
/// How conversations become samples: by the run's tokenizer, but without what it puts around a text, which a
/// template writes.
data::ConversationRules conversation_rules(const ModelConfig& model, const DataConfig& data);
/// The data sets that the model's family reads.
struct DataNeeds {
  const ModelConfig& model;
  const DataConfig& data;
  const EvalConfig& eval;
  std::int64_t seed = 0;
  RunLength length;
  bool one_epoch = false;  // of the training data, however many samples the run reads
  /// What a length in samples asks for, whole steps or not, as Megatron has it: a run that goes on by another
  /// batch takes other steps of the same samples.
  std::int64_t asked = 0;
};
RunData open_run_data(const DataNeeds& config);

/// The order of a split of so many samples.
std::unique_ptr<data::Sampler> run_sampler(const DataConfig& config, std::int64_t total);
/// That of training, which may go by difficulty.
std::unique_ptr<data::Sampler> training_sampler(const DataConfig& config, std::int64_t total);
/// Exact mode adds neighbours of a global batch first, so a rank takes neighbours.
data::Owners owners_of(const ModelConfig& model);
/// All samples of a step, 1 is the first, in the order the ranks take them. The turn is any rank's, but for
/// the batch.
std::vector<std::int64_t> samples_of_step(const BatchSchedule& batches, const data::Sampler& sampler,
                                          const data::SampleTurn& turn, std::int64_t step);

}  // namespace weft
