// Reading JSON that people wrote.
#include "weft/text/json.h"

#include "weft/base/error.h"

namespace weft {

nlohmann::json parse_json(std::string_view text, std::string_view who) {
  // The parser recurses: a file of brackets must not be able to end the stack.
  constexpr int deepest = 64;
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > deepest) fail(Kind::data, who, ": nests deeper than ", deepest, " levels");
    return true;
  };
  try {
    return nlohmann::json::parse(text, shallow);
  } catch (const nlohmann::json::exception& error) {
    fail(Kind::data, who, ": is not JSON: ", error.what());
  }
}

void read_vocabulary(const nlohmann::json& json, std::string_view who, Vocabulary& vocabulary) {
  if (!json.is_object())
    fail(Kind::data, who, ": the vocabulary is ", json.type_name(), ", expected an object");
  for (const auto& [token, id] : json.items()) {
    if (!id.is_number_integer()) {
      fail(Kind::data, who, ": token '", token, "' has ", id.type_name(),
           " for an id, expected a whole number");
    }
    vocabulary.set(token, id.get<std::int64_t>(), who);
  }
}

std::string text_field(const nlohmann::json& json, const char* key, std::string_view who) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_string()) fail(Kind::data, who, ": expected text in '", key, "'");
  return at->get<std::string>();
}

bool flag_field(const nlohmann::json& json, const char* key, bool otherwise, std::string_view who) {
  const auto at = json.find(key);
  if (at == json.end() || at->is_null()) return otherwise;
  if (!at->is_boolean()) fail(Kind::data, who, ": expected true or false in '", key, "'");
  return at->get<bool>();
}

}  // namespace weft
