#include "weft/data/pack_conversations.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"

namespace weft::data {
namespace {

constexpr std::int64_t lines_at_once = 4096;

struct Measured {
  std::vector<Conversation> conversations;
  std::vector<std::int64_t> tokens;  // of each
};

Measured measured(const LineFile& file, std::int64_t line, const ConversationRules& rules) {
  try {
    Measured out{.conversations = conversations_of(file.line(line)), .tokens = {}};
    for (const Conversation& one : out.conversations)
      out.tokens.push_back(static_cast<std::int64_t>(rules.transcribe(one).tokens.size()));
    return out;
  } catch (const Error& e) {
    fail(e.kind(), file.name(), ":", file.number(line), ": ", e.what());
  }
}

// Writes a line whenever the next conversation would not fit behind those that wait.
class Packer {
 public:
  Packer(std::int64_t length, File& to) : length_(length), to_(to) {}

  void add(Conversation conversation, std::int64_t tokens) {
    if (tokens_ + tokens > length_) flush();
    ++told_.conversations;
    told_.tokens += std::min(tokens, length_);
    if (tokens > length_) ++told_.too_long;
    tokens_ += tokens;
    waiting_.push_back(std::move(conversation));
  }
  void flush() {
    if (waiting_.empty()) return;
    to_.write(line_of(waiting_) + "\n");
    waiting_.clear();
    tokens_ = 0;
    ++told_.lines;
  }
  const PackedConversations& told() const { return told_; }

 private:
  std::int64_t length_, tokens_ = 0;
  File& to_;
  std::vector<Conversation> waiting_;
  PackedConversations told_;
};

void pack_file(const LineFile& file, const ConversationRules& rules, Workers& workers, Packer& packer) {
  for (std::int64_t from = 0; from < file.size(); from += lines_at_once) {
    std::vector<Measured> block(static_cast<std::size_t>(std::min(lines_at_once, file.size() - from)));
    workers.parallel_for(std::ssize(block), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        block[static_cast<std::size_t>(i)] = measured(file, from + i, rules);
    });
    for (Measured& line : block)
      for (std::size_t c = 0; c < line.conversations.size(); ++c)
        packer.add(std::move(line.conversations[c]), line.tokens[c]);
  }
}

}  // namespace

PackedConversations pack_conversations(const std::vector<std::string>& files, const ConversationRules& rules,
                                       Workers& workers, const std::filesystem::path& to) {
  PackedConversations told;
  write_atomically(to, [&](File& out) {
    Packer packer(rules.sequence_length, out);
    for (const std::string& name : files) pack_file(LineFile(name), rules, workers, packer);
    packer.flush();
    told = packer.told();
    if (told.lines == 0) fail(Kind::data, join(files, ", "), ": hold no conversation");
  });
  return told;
}

}  // namespace weft::data
