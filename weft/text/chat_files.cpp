// A tokenizer's chat template from the files beside it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/text/chat.h"
#include "weft/text/json.h"

namespace weft {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

json object_in(const fs::path& file) {
  if (!fs::exists(file)) return json::object();
  json out = parse_json(read_file(file), file.string());
  if (!out.is_object()) fail(Kind::data, file.string(), ": is ", out.type_name(), ", expected an object");
  return out;
}

// "bos_token": "<s>", or an object with its content.
void read_tokens(const json& object, const std::string& who, std::map<std::string, std::string>& tokens) {
  for (const char* part : {"bos", "eos", "unk", "sep", "pad", "cls", "mask"}) {
    const std::string name = std::string(part) + "_token";
    const auto token = object.find(name);
    if (token == object.end()) continue;
    if (token->is_string()) tokens[name] = token->get<std::string>();
    if (token->is_object()) tokens[name] = text_field(*token, "content", who);
  }
}

// Of the list of a tokenizer_config.json, or nothing.
std::string named(const json& list, std::string_view name, const std::string& who) {
  for (const json& one : list)
    if (one.is_object() && text_field(one, "name", who) == name) return text_field(one, "template", who);
  return {};
}

bool read_config(const json& config, ChatSource& source) {
  const auto at = config.find("chat_template");
  if (at == config.end() || at->is_null()) return false;
  if (at->is_string()) {
    source.jinja = at->get<std::string>();
    return true;
  }
  if (!at->is_array())
    fail(Kind::data, source.name, ": 'chat_template' is ", at->type_name(), ", expected a text or a list");
  source.jinja = named(*at, "default", source.name);
  source.with_tools = named(*at, "tool_use", source.name);
  if (source.jinja.empty()) fail(Kind::data, source.name, ": none of the chat templates is named 'default'");
  return true;
}

fs::path folder_of(const fs::path& tokenizer) {
  return fs::is_directory(tokenizer) ? tokenizer : tokenizer.parent_path();
}

}  // namespace

std::map<std::string, std::string> chat_tokens_of(const fs::path& tokenizer) {
  std::map<std::string, std::string> out;
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    const fs::path file = folder_of(tokenizer) / name;
    read_tokens(object_in(file), file.string(), out);
  }
  return out;
}

std::optional<ChatTemplate> chat_template_of(const fs::path& tokenizer) {
  const fs::path folder = folder_of(tokenizer), config = folder / "tokenizer_config.json",
                 file = folder / "chat_template.jinja",
                 apart = folder / "additional_chat_templates" / "tool_use.jinja",
                 tools = fs::exists(apart) ? apart : folder / "tool_use.jinja";  // as a checkpoint keeps it
  ChatSource source;
  if (fs::exists(file)) {
    source.name = file.string();
    source.jinja = read_file(file);
    if (fs::exists(tools)) source.with_tools = read_file(tools);
  } else {
    source.name = config.string();
    if (!read_config(object_in(config), source)) return std::nullopt;
  }
  source.tokens = chat_tokens_of(tokenizer);
  return ChatTemplate(std::move(source));
}

}  // namespace weft
