#include "weft/data/conversation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::data {
namespace {

using Json = nlohmann::ordered_json;

// Far more than any message has; what is written again is written by functions that call themselves.
constexpr int most_levels = 200;

Json parsed(std::string_view line) {
  const auto shallow = [](int depth, Json::parse_event_t, const Json&) {
    if (depth > most_levels)
      fail(Kind::data, "has more than ", most_levels, " lists and objects within each other");
    return true;
  };
  try {
    return Json::parse(line, shallow);
  } catch (const Json::parse_error& e) {
    fail(Kind::data, "is no JSON (at byte ", e.byte, "), expected {\"messages\": [...]}");
  } catch (const Json::exception&) {
    fail(Kind::data, "is no JSON that can be read: a number too large");
  }
}

Message message_of(const Json& json, std::size_t number) {
  const auto role = json.is_object() ? json.find("role") : json.end();
  if (!json.is_object() || role == json.end() || !role->is_string())
    fail(Kind::data, "message ", number,
         " has no role, expected {\"role\": \"system, user, assistant or tool\", \"content\": \"...\"}");
  Message out{.role = role->get<std::string>(), .content = {}};
  if (const auto content = json.find("content"); content != json.end() && content->is_string()) {
    out.content = content->get<std::string>();
    out.is_text = true;
  }
  out.json = json.dump();
  return out;
}

std::vector<Message> whole(const Json& list, std::size_t& number) {
  std::vector<Message> out;
  for (const Json& message : list) out.push_back(message_of(message, ++number));
  return out;
}

std::vector<Conversation> parted_by_system(std::vector<Message> all) {
  std::vector<Conversation> out;
  for (Message& message : all) {
    if (out.empty() || message.role == "system") out.emplace_back();
    out.back().messages.push_back(std::move(message));
  }
  return out;
}

// Some data sets hold a list as a text, so that all of its members may have other keys.
Json list_at(const Json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end() || found->is_null() || *found == "") return {};
  Json list = found->is_string() ? Json::parse(found->get<std::string>(), nullptr, false) : *found;
  if (!list.is_array())
    fail(Kind::data, "its ", name, " are ", list.is_discarded() ? "a text that is no JSON" : list.type_name(),
         ", expected a list");
  return list;
}

/// As the line has it: not every template reads it.
std::string beside_messages(const Json& line) {
  Json out = Json::object();
  for (const char* name : {"tools", "documents", "chat_template_kwargs"})
    if (const auto found = line.find(name); found != line.end()) out[name] = *found;
  return out.empty() ? std::string() : out.dump();
}

std::vector<Conversation> conversations_in(const Json& json, std::size_t& number) {
  const auto messages = json.is_object() ? json.find("messages") : json.end();
  if (!json.is_object() || messages == json.end() || !messages->is_array())
    fail(Kind::data, "has no list of messages, expected {\"messages\": [...]}");
  const bool lists = !messages->empty() && std::ranges::all_of(*messages, &Json::is_array);
  std::vector<Conversation> out;
  if (lists) {
    for (const Json& one : *messages)
      if (!one.empty()) out.push_back({.messages = whole(one, number)});
  } else {
    out = parted_by_system(whole(*messages, number));
  }
  if (out.empty()) fail(Kind::data, "its list of messages is empty");
  const std::string beside = beside_messages(json);
  for (Conversation& one : out) one.beside = beside;
  return out;
}

std::string packed_line(const std::vector<Conversation>& conversations) {
  std::vector<std::string> lines;
  for (const Conversation& one : conversations)
    lines.push_back("{\"messages\": [" + json_of(one.messages) + "]" +
                    (one.beside.empty() ? "}" : ", " + one.beside.substr(1)));
  return "{\"packed\": [" + join(lines, ", ") + "]}";
}

}  // namespace

Json beside_messages_of(const Json& line) {
  Json out = Json::object();
  for (const char* name : {"tools", "documents"})
    if (Json list = list_at(line, name); !list.is_null()) out[name] = std::move(list);
  const auto more = line.find("chat_template_kwargs");
  if (more == line.end() || more->is_null()) return out;
  if (!more->is_object())
    fail(Kind::data, "its chat_template_kwargs are ", more->type_name(), ", expected an object");
  out.update(*more);
  return out;
}

std::vector<Conversation> conversations_of(std::string_view line) {
  const Json json = parsed(line);
  std::size_t number = 0;
  const auto packed = json.is_object() ? json.find("packed") : json.end();
  if (!json.is_object() || packed == json.end() || json.contains("messages"))
    return conversations_in(json, number);
  if (!packed->is_array() || packed->empty())
    fail(Kind::data, "its packed is no list of lines, expected {\"packed\": [{\"messages\": [...]}, ...]}");
  std::vector<Conversation> out;
  for (const Json& one : *packed)
    for (Conversation& conversation : conversations_in(one, number)) out.push_back(std::move(conversation));
  return out;
}

std::string json_of(const std::vector<Message>& messages) {
  std::vector<std::string> all;
  for (const Message& message : messages) all.push_back(message.json);
  return "[" + join(all, ", ") + "]";
}

std::string line_of(const std::vector<Conversation>& conversations) {
  if (!std::ranges::all_of(conversations, [](const Conversation& one) { return one.beside.empty(); }))
    return packed_line(conversations);
  const bool parted = std::ranges::all_of(conversations, [](const Conversation& one) {
    return one.messages.front().role == "system" &&
           std::ranges::count(one.messages, std::string("system"), &Message::role) == 1;
  });
  std::vector<std::string> lists;
  std::vector<Message> all;
  for (const Conversation& one : conversations) {
    lists.push_back(json_of(one.messages));
    all.insert(all.end(), one.messages.begin(), one.messages.end());
  }
  return "{\"messages\": " + (parted ? json_of(all) : "[" + join(lists, ", ") + "]") + "}";
}

}  // namespace weft::data
