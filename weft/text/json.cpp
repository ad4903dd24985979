#include "weft/text/json.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

namespace {

// How deep brackets nest outside of texts.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (quoted) {
      if (letter == '\\') ++at;
      quoted = letter != '"';
    } else if (letter == '"') {
      quoted = true;
    } else if (letter == '[' || letter == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view who) {
  // What reads the result recurses: a file of brackets must not be able to end the stack.
  constexpr int most = 64;
  if (depth_of(text) > most) fail(Kind::data, who, ": nests deeper than ", most, " levels");
  try {
    return nlohmann::json::parse(text);
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
