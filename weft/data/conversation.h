// Conversations as a line of JSON has them: {"messages": [{"role": "user", "content": "…"}, …]}.
#pragma once

#include <nlohmann/json_fwd.hpp>
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
struct Conversation {
  std::vector<Message> messages;
  // What else the line has that templates may read, as a JSON object; or empty. What is read of it, and what
  // is wrong with it, beside_messages_of() says.
  std::string beside = {};
};

/// The conversations of a line. Each message of the system begins another one, as in Megatron's packed lines;
/// or `messages` is a list of lists, each a conversation; or `packed` is a list of lines. Throws with what is
/// wrong and no place, which the caller knows.
std::vector<Conversation> conversations_of(std::string_view line);

/// Of an object with tools, documents and chat_template_kwargs, or some of them, what a template may ask for:
/// transformers' names. Throws with what is wrong and no place.
nlohmann::ordered_json beside_messages_of(const nlohmann::ordered_json& line);

/// The messages as a JSON list.
std::string json_of(const std::vector<Message>& messages);
/// A line with these conversations: one list where each begins with the system, which Megatron reads too, a
/// list of lists else, and `packed` where templates read more than messages.
std::string line_of(const std::vector<Conversation>& conversations);

}  // namespace weft::data
