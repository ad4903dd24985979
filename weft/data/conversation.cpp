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

Conversation whole(const Json& list, std::size_t& number) {
  Conversation out;
  for (const Json& message : list) out.push_back(message_of(message, ++number));
  return out;
}

std::vector<Conversation> parted_by_system(Conversation all) {
  std::vector<Conversation> out;
  for (Message& message : all) {
    if (out.empty() || message.role == "system") out.emplace_back();
    out.back().push_back(std::move(message));
  }
  return out;
}

}  // namespace

std::vector<Conversation> conversations_of(std::string_view line) {
  const Json json = parsed(line);
  const auto messages = json.is_object() ? json.find("messages") : json.end();
  if (!json.is_object() || messages == json.end() || !messages->is_array())
    fail(Kind::data, "has no list of messages, expected {\"messages\": [...]}");
  const bool lists = !messages->empty() && std::ranges::all_of(*messages, &Json::is_array);
  std::size_t number = 0;
  std::vector<Conversation> out;
  if (lists) {
    for (const Json& one : *messages)
      if (!one.empty()) out.push_back(whole(one, number));
  } else {
    out = parted_by_system(whole(*messages, number));
  }
  if (out.empty()) fail(Kind::data, "its list of messages is empty");
  return out;
}

std::string json_of(const Conversation& conversation) {
  std::vector<std::string> messages;
  for (const Message& message : conversation) messages.push_back(message.json);
  return "[" + join(messages, ", ") + "]";
}

std::string line_of(const std::vector<Conversation>& conversations) {
  const bool parted = std::ranges::all_of(conversations, [](const Conversation& one) {
    return one.front().role == "system" &&
           std::ranges::count(one, std::string("system"), &Message::role) == 1;
  });
  std::vector<std::string> lists;
  Conversation all;
  for (const Conversation& one : conversations) {
    lists.push_back(json_of(one));
    all.insert(all.end(), one.begin(), one.end());
  }
  return "{\"messages\": " + (parted ? json_of(all) : "[" + join(lists, ", ") + "]") + "}";
}

}  // namespace weft::data
