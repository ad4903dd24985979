#include "weft/data/conversation_dataset.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/keyed.h"

namespace weft::data {

void complete_conversations(const std::vector<Transcript>& conversations, const ConversationRules& rules,
                            Sample& into) {
  const auto length = static_cast<std::size_t>(rules.sequence_length);
  auto& tokens = into[Field::tokens];
  auto& positions = into[Field::positions];
  auto& documents = into[Field::documents];
  std::vector<std::uint8_t> learned;
  for (std::size_t c = 0; c < conversations.size() && tokens.size() <= length; ++c) {
    const Transcript& one = conversations[c];
    const bool last = c + 1 == conversations.size();
    tokens.insert(tokens.end(), one.tokens.begin(), one.tokens.end());
    const std::size_t begin = learned.size();
    learned.insert(learned.end(), one.learned.begin(), one.learned.end());
    if (begin < learned.size() && !rules.begins_are_learned) learned[begin] = 0;
    const std::size_t from = positions.size();
    positions.resize(last ? std::max(length, from) : tokens.size());
    std::iota(positions.begin() + std::ptrdiff_t(from), positions.end(), 0);
    if (rules.apart) documents.resize(positions.size(), static_cast<std::int32_t>(c));
  }
  positions.resize(length);
  if (rules.apart) documents.resize(length);
  // Of what is too long the token behind the sequence goes as well, as Megatron has it: padding is the last
  // label.
  if (tokens.size() > length) {
    tokens.resize(length);
    learned.resize(length);
  }
  tokens.resize(length + 1, rules.pad);
  learned.resize(length + 1, 0);
  auto& labels = into[Field::labels];
  auto& mask = into[Field::loss_mask];
  labels.assign(tokens.begin() + 1, tokens.end());
  tokens.pop_back();
  mask.resize(length);
  for (std::size_t i = 0; i < length; ++i)
    mask[i] = learned[i + 1] != 0 && (rules.pad_is_learned || labels[i] != rules.pad) ? 1 : 0;
}

ConversationDataset::ConversationDataset(std::shared_ptr<const LineFile> file, const ConversationOrder& order,
                                         ConversationRules rules)
    : file_(std::move(file)), order_(order), rules_(std::move(rules)) {}

std::int64_t ConversationDataset::line_of_sample(std::int64_t i) const {
  if (i < 0 || i >= size()) fail(Kind::data, file_->name(), ": sample ", i, " asked for, there are ", size());
  const std::int64_t lines = order_.lines.size();
  if (!order_.shuffled) return order_.lines.begin + i % lines;
  const KeyedPermutation permutation(static_cast<std::uint64_t>(lines),
                                     {.seed = *order_.shuffled,
                                      .stream = static_cast<std::uint64_t>(order_.lines.begin),
                                      .epoch = static_cast<std::uint64_t>(i / lines)});
  return order_.lines.begin + static_cast<std::int64_t>(permutation(static_cast<std::uint64_t>(i % lines)));
}

void ConversationDataset::check_ids(const std::vector<std::int32_t>& tokens) const {
  if (rules_.vocabulary == 0 || tokens.empty()) return;
  const std::int32_t highest = *std::ranges::max_element(tokens);
  if (highest >= rules_.vocabulary)
    fail(Kind::data, "has token ", highest, ", and the model knows ", rules_.vocabulary,
         "; is it the model's tokenizer?");
}

std::vector<Transcript> ConversationDataset::transcripts(std::int64_t line) const {
  std::vector<Transcript> out;
  try {
    const std::vector<Conversation> conversations = conversations_of(file_->line(line));
    if (!rules_.apart && conversations.size() > 1)
      fail(Kind::data, "holds ", conversations.size(),
           " conversations, and layers that remember go from one to the next: give each a line of its own");
    std::size_t tokens = 0;
    for (const Conversation& one : conversations) {
      out.push_back(rules_.transcribe(one));
      check_ids(out.back().tokens);
      tokens += out.back().tokens.size();
      if (tokens > static_cast<std::size_t>(rules_.sequence_length)) break;
    }
    if (tokens == 0) fail(Kind::data, "its messages hold no word");
  } catch (const Error& e) {
    fail(e.kind(), file_->name(), ":", file_->number(line), ": ", e.what());
  }
  return out;
}

void ConversationDataset::fill(std::int64_t i, Sample& into) const {
  into.clear();
  complete_conversations(transcripts(line_of_sample(i)), rules_, into);
}

std::vector<Origin> ConversationDataset::origins(std::int64_t i) const {
  const std::int64_t line = line_of_sample(i);
  std::vector<Origin> out;
  std::int64_t from = 0;
  for (const Transcript& one : transcripts(line)) {
    const std::int64_t count =
        std::min(static_cast<std::int64_t>(one.tokens.size()), rules_.sequence_length - from);
    out.push_back({file_->name(), file_->number(line), from, count});
    from += count;
  }
  return out;
}

}  // namespace weft::data
