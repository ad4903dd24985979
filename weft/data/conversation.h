// Conversations as a line of JSON has them: {"messages": [{"role": "user", "content": "…"}, …]}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

struct Message {
  std::string role;
  std::string content;    // empty where it is no text
  bool is_text = false;   // whether the content is a text
  std::string json = {};  // all of it, for templates that read more
};
using Conversation = std::vector<Message>;

/// The conversations of a line. Each message of the system begins another one, as in Megatron's packed lines;
/// or `messages` is a list of lists, each a conversation. Throws with what is wrong and no place, which the
/// caller knows.
std::vector<Conversation> conversations_of(std::string_view line);

/// The messages as a JSON list.
std::string json_of(const Conversation& conversation);
/// A line with these conversations: one list where each begins with the system, which Megatron reads too, a
/// list of lists else.
std::string line_of(const std::vector<Conversation>& conversations);

}  // namespace weft::data
