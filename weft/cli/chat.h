// Conversations on the command line: whose template writes them, and where they come from.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "weft/cli/tokenizer_lines.h"
#include "weft/text/chat.h"
#include "weft/text/open.h"

namespace weft::cli {

struct ChatFlags {
  std::string chat_template;         // a file, or a name of Megatron's; empty: the tokenizer's own
  std::string chat_template_kwargs;  // a JSON object
};

template <class Visitor>
void describe(Visitor& v, ChatFlags& o) {
  v("chat_template", o.chat_template,
    "instead of the tokenizer's own: a file of Jinja, nemotron-h-aligned, nemotron-nano-v2 or identity");
  v("chat_template_kwargs", o.chat_template_kwargs,
    "what the template may ask for beside messages, such as {\"enable_thinking\": false}");
}

/// `tokenizer` may be empty where the flags name a template. Fails with Kind::usage where there is none.
ChatTemplate chat_template_for(const ChatFlags& flags, const TokenizerOptions& tokenizer,
                               std::string_view verb);

struct Conversation {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();  // for its template
};
/// A line of JSON: a list of messages, or an object with "messages" and perhaps "tools", "documents" and
/// "chat_template_kwargs"; other keys are somebody else's. What `flags` say goes before the line's own.
Conversation conversation_in(std::string_view line, const LinePlace& place, const ChatFlags& flags);
/// What a person says, behind what is said to the model before, if anything.
Conversation conversation_of(const std::string& system, const std::string& user, const ChatFlags& flags);

}  // namespace weft::cli
