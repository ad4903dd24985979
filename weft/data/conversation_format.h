// How a conversation becomes tokens, and which of them are learned: Megatron's prompt formats, or the
// template that came with a tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "weft/data/conversation_dataset.h"
#include "weft/text/chat.h"
#include "weft/text/tokenizer.h"

namespace weft::data {

/// What a template that asks for the date is told (26 July 2024, which Llama's own is where there is no
/// clock): the same run reads the same on any day.
inline constexpr std::int64_t day_of_conversations = 1'721'952'000;

struct ConversationFormat {
  ChatTemplate chat;
  std::int32_t pad = 0;
  bool by_turns = true;      // a conversation's tokens are those of its turns, each alone: Megatron's formats
  int unlearned_prefix = 0;  // tokens that every answer's turn begins with
};
/// "nemotron-h-aligned", "nemotron-nano-v2", "identity", or "default": the template beside the tokenizer.
/// Refuses a vocabulary without what the format pads with.
ConversationFormat conversation_format(const std::string& name, const std::filesystem::path& tokenizer_files,
                                       const Tokenizer& tokenizer);

enum class Learning { answers, last_answer, everything };
Transcribe transcriber(std::shared_ptr<const Tokenizer> tokenizer, ConversationFormat format, Learning what);

}  // namespace weft::data
