// Fields to JSON, and from JSON or YAML: nested objects follow the groups.
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/nearest.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

Json scalar(const Field& field, const std::string& word) {
  switch (field.kind()) {
    case FieldKind::boolean:
    case FieldKind::integer:
      return Json::parse(word);
    case FieldKind::real: {
      // JSON has no words for the infinities: they stay strings.
      const Json number = Json::parse(word, nullptr, false);
      return number.is_discarded() ? Json(word) : number;
    }
    case FieldKind::text:
    case FieldKind::choice:
      break;
  }
  return word;
}

Json value_of(const Field& field) {
  const auto words = field.write();
  if (field.list()) {
    Json all = Json::array();
    for (const std::string& word : words) all.push_back(scalar(field, word));
    return all;
  }
  return words.empty() ? Json(nullptr) : scalar(field, words[0]);
}

Json& place(Json& root, std::string_view path) {
  Json* at = &root;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    at = &(*at)[std::string(path.substr(0, dot))];
    path.remove_prefix(dot + 1);
  }
  return (*at)[std::string(path)];
}

void set(Fields& fields, const std::string& path, const std::vector<std::string>& words, Origin who) {
  Field* field = fields.find(path);
  if (field == nullptr) {
    std::vector<std::string_view> paths;
    for (const auto& f : fields.all()) paths.push_back(f->path());
    fail(Kind::usage, path, " is not a setting", did_you_mean(path, paths));
  }
  try {
    field->read(words, who);
  } catch (const Error& e) {
    fail(Kind::usage, path, ": ", e.what());
  }
}

std::string word_of(const Json& value, const std::string& path) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_primitive() && !value.is_null()) return value.dump();
  fail(Kind::usage, path, ": a list or object stands where one value was expected");
}

void take(Fields& fields, const Json& value, const std::string& path, Origin who) {
  if (value.is_object()) {
    for (const auto& item : value.items())
      take(fields, item.value(), path.empty() ? item.key() : text(path, ".", item.key()), who);
    return;
  }
  std::vector<std::string> words;
  if (value.is_array())
    for (const Json& item : value) words.push_back(word_of(item, path));
  else if (!value.is_null())
    words.push_back(word_of(value, path));
  set(fields, path, words, who);
}

void take(Fields& fields, const YAML::Node& value, const std::string& path, Origin who) {
  if (value.IsMap()) {
    std::set<std::string> seen;
    for (const auto& item : value) {
      if (!item.first.IsScalar())
        fail(Kind::usage, path.empty() ? "settings" : path,
             ": a list or map stands where a name was expected");
      const auto key = item.first.as<std::string>();
      if (!seen.insert(key).second)
        fail(Kind::usage, path.empty() ? key : text(path, ".", key), " is given twice; leave one of them");
      take(fields, item.second, path.empty() ? key : text(path, ".", key), who);
    }
    return;
  }
  std::vector<std::string> words;
  if (value.IsScalar()) words.push_back(value.Scalar());
  for (const auto& item : value) {
    if (!item.IsScalar()) fail(Kind::usage, path, ": a list or map stands where one value was expected");
    words.push_back(item.Scalar());
  }
  set(fields, path, words, who);
}

}  // namespace

// Refused at the door: what was accepted must not fail when the settings are written.
void read_word(std::string_view from, std::string& to) {
  const std::string shown = Json(from).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Json::parse(shown).get_ref<const std::string&>() != from)
    fail(Kind::usage, shown, " is not UTF-8 text, the only kind that settings are written in");
  to = from;
}

std::string to_json(const Fields& fields, JsonForm form) {
  Json root = Json::object();
  for (const auto& field : fields.all()) {
    Json value = value_of(*field);
    if (form == JsonForm::with_origins)
      value = {{"value", std::move(value)}, {"origin", name(field->origin())}};
    place(root, field->path()) = std::move(value);
  }
  return root.dump(2);
}

void from_json(Fields& fields, std::string_view json, Origin who) {
  const Json root = Json::parse(json, nullptr, false);
  if (!root.is_object()) fail(Kind::data, "settings: not a JSON object");
  take(fields, root, "", who);
}

void from_yaml(Fields& fields, const std::string& yaml, Origin who) {
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& e) {
    fail(Kind::data, "settings: not YAML: ", e.what());
  }
  if (!root.IsMap()) fail(Kind::data, "settings: not a YAML map");
  take(fields, root, "", who);
}

}  // namespace weft
