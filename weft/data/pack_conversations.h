// Puts conversations together until they fill a sample, so that little of a step is padding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/base/workers.h"
#include "weft/data/conversation_dataset.h"

namespace weft::data {

struct PackedConversations {
  std::int64_t conversations = 0, lines = 0;
  std::int64_t tokens = 0;    // of all conversations, as far as samples hold them
  std::int64_t too_long = 0;  // conversations that no sample holds whole
};

/// All conversations of the files in their order, each behind the one before it as long as both fit into a
/// sample: the same lines whatever the number of workers. One that no sample holds has a line of its own.
PackedConversations pack_conversations(const std::vector<std::string>& files, const ConversationRules& rules,
                                       Workers& workers, const std::filesystem::path& to);

}  // namespace weft::data
