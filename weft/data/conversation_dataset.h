// Samples of conversations: a line of JSON each, its conversations one behind the other, and a loss on what
// is to be learned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/range.h"
#include "weft/data/conversation.h"
#include "weft/data/dataset.h"
#include "weft/data/line_file.h"

namespace weft::data {

/// A conversation in tokens.
struct Transcript {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> learned;  // of each token: 1 where it is to be learned
};
/// Throws with what is wrong and no place. Many threads may call it at once.
using Transcribe = std::function<Transcript(const Conversation&)>;

struct ConversationRules {
  std::int64_t sequence_length = 0;
  std::int64_t vocabulary =
      0;  // that the model knows, where a tokenizer may have more; 0: ids are not checked
  std::int32_t pad = 0;
  bool pad_is_learned = false;     // where it is not padding but a word of an answer; Megatron's never is
  bool begins_are_learned = true;  // by the last word of the conversation before, as Megatron has it
  bool apart = true;               // no conversation sees another; else there may be but one in a sample
  Transcribe transcribe;
};

/// Which lines in which order, again and again.
struct ConversationOrder {
  Range lines;
  std::int64_t samples = 0;
  std::optional<std::uint32_t> shuffled = {};  // by this seed, every epoch anew; nothing: as in the file
};

class ConversationDataset : public Dataset {
 public:
  ConversationDataset(std::shared_ptr<const LineFile> file, const ConversationOrder& order,
                      ConversationRules rules);
  std::int64_t size() const override { return order_.samples; }
  void fill(std::int64_t i, Sample& into) const override;
  /// Of each conversation its file and line, and where it lies in the sample.
  std::vector<Origin> origins(std::int64_t i) const override;

 private:
  std::int64_t line_of_sample(std::int64_t i) const;
  void check_ids(const std::vector<std::int32_t>& tokens) const;
  std::vector<Transcript> transcripts(std::int64_t line) const;

  std::shared_ptr<const LineFile> file_;
  ConversationOrder order_;
  ConversationRules rules_;
};

/// The rows of a sample; what is missing to a sequence is padding that belongs to the last conversation.
void complete_conversations(const std::vector<Transcript>& conversations, const ConversationRules& rules,
                            Sample& into);

}  // namespace weft::data
