// Walks a configuration by the table, so that nothing in it is passed over.
#include "weft/cli/dialect/deepspeed.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/base/nearest.h"
#include "weft/base/whole.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect {

using Json = nlohmann::json;

namespace ds {
void Taking::set(std::string_view key, std::string_view field, std::vector<std::string> words) {
  fields_.at(field).read(words, Origin::file);
  KeySaid said{key, field, fields_.at(field).write()};
  for (const KeySaid& other : out_.keys)
    if (other.field == field && !other.never && other.words != said.words)
      fail(Kind::usage, other.key, " ", join(other.words, " "), " and ", key, " ", join(said.words, " "),
           " contradict each other: leave one out");
  out_.keys.push_back(std::move(said));
}

void Taking::add(std::string_view key, std::string_view field, const std::string& word) {
  auto at = std::ranges::find(out_.keys, field, &KeySaid::field);
  if (at == out_.keys.end()) at = out_.keys.insert(at, {key, field, {}});
  at->words.push_back(word);
  fields_.at(field).read(at->words, Origin::file);
}

void Taking::never(std::string_view key, std::string_view field, std::string_view word) {
  out_.keys.push_back({key, field, {std::string(word)}, true});
}

void Taking::usual(std::string_view field, std::string_view word) {
  Field& f = fields_.at(field);
  if (f.origin() == Origin::built_in) f.read(std::vector{std::string(word)}, Origin::derived);
}

const Json* Taking::stands_at(std::string_view path) const {
  const Json* at = &root_;
  for (const std::string_view name : split(path, '.')) {
    if (!at->is_object() || !at->contains(std::string(name))) return nullptr;
    at = &(*at)[std::string(name)];
  }
  return at;
}

const Json* Taking::find(std::string_view path) const {
  const Json* at = stands_at(path);
  return at == nullptr || at->is_null() || *at == "auto" ? nullptr : at;
}

bool Taking::leaves(std::string_view path) const {
  const Json* at = stands_at(path);
  return at != nullptr && *at == "auto";
}

std::string Taking::word_at(std::string_view path, std::string_view otherwise) const {
  const Json* at = find(path);
  if (at == nullptr) return std::string(otherwise);
  return at->is_string() ? at->get<std::string>() : at->dump();
}

void check_names(std::string_view path, const Json& map, std::span<const std::string_view> known) {
  for (const auto& item : map.items())
    if (std::ranges::find(known, item.key()) == known.end())
      fail(Kind::usage, path, ".", item.key(), " is no key of DeepSpeed's", did_you_mean(item.key(), known));
}

std::string number(const Json& value) {
  if (!value.is_number_float()) return value.dump();
  const double x = value.get<double>();
  const auto whole = whole_number(x);
  return whole ? write_word(*whole) : write_word(x);
}

std::vector<Key> keys() {
  std::vector<Key> out;
  for (const auto& some : {general_keys(), rule_keys(), schedule_keys(), zero_keys(), curriculum_keys(),
                           left_out_keys(), block_keys()})
    out.insert(out.end(), some.begin(), some.end());
  return out;
}

}  // namespace ds

namespace {

using ds::Key;

constexpr int deepest = 12;  // of groups in each other; DeepSpeed's own have six

std::string_view article(ds::Shape shape) {
  switch (shape) {
    case ds::Shape::flag:
      return "true or false";
    case ds::Shape::whole:
      return "a whole number";
    case ds::Shape::real:
      return "a number";
    case ds::Shape::text:
      return "a text";
    case ds::Shape::list:
      return "a list";
    case ds::Shape::map:
      return "a group of keys";
  }
  return "";
}

bool fits(ds::Shape shape, const Json& value) {
  switch (shape) {
    case ds::Shape::flag:
      return value.is_boolean();
    case ds::Shape::whole:
      return value.is_number() && whole_number(value.get<double>());  // "5e8" is one to DeepSpeed
    case ds::Shape::real:
      return value.is_number();
    case ds::Shape::text:
      return value.is_string();
    case ds::Shape::list:
      return value.is_array();
    case ds::Shape::map:
      return value.is_object();
  }
  return false;
}

std::string word_of(ds::Shape shape, const Json& value) {
  if (shape == ds::Shape::whole && value.is_number_float())
    return write_word(std::int64_t(value.get<double>()));
  if (value.is_number_float()) return write_word(value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Left to others, or said not to be there.
bool says_nothing(const Json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>() == "auto");
}

class Walk {
 public:
  Walk(Fields& fields, const Json& root, const std::string& file)
      : root_(root),
        keys_(ds::keys()),
        out_{.file = file, .keys = {}, .notices = {}},
        taking_(fields, root, out_) {}

  DeepSpeedSaid result() && {
    group("", root_, false);
    std::vector<std::string> refused;
    for (const auto& [what, paths] : refused_) refused.push_back(text(what, ": ", join(paths, ", ")));
    if (!refused.empty()) fail(Kind::usage, "weft cannot do this yet: ", join(refused, "; "));
    for (const Key& key : keys_)
      if (const auto at = found_.find(key.path); at != found_.end()) take(key, *at->second);
    for (const Key& key : named_)
      if (const auto at = found_.find(key.path); at != found_.end()) take(key, *at->second);
    const std::string_view clipping = "gradient_clipping";
    if (taking_.find(clipping) == nullptr && !taking_.leaves(clipping)) taking_.usual("optimizer.clip", "0");
    for (const auto& [why, paths] : idle_)
      out_.notices.push_back(text("no effect here: ", join(paths, ", "), " of ", out_.file, " (", why, ")"));
    return std::move(out_);
  }

 private:
  const Key* key_of(std::string_view path) const {
    const auto at = std::ranges::find_if(keys_, [&](const Key& key) { return key.path == path; });
    return at == keys_.end() ? nullptr : &*at;
  }

  bool is_group(const std::string& path) const {
    return std::ranges::any_of(keys_, [&](const Key& key) { return key.path.starts_with(path + "."); });
  }

  /// `off`: a group around it is switched off.
  void group(const std::string& path, const Json& map, bool off) {
    const Key* gate = key_of(path + ".enabled");
    const bool off_here = off || (gate != nullptr && (!map.contains("enabled") || map["enabled"] == false));
    for (const auto& [name, value] : map.items()) {
      const std::string here = path.empty() ? name : text(path, ".", name);
      if (const Key* key = key_of(here); key != nullptr)
        leaf(*key, value, name == "enabled" ? off : off_here);
      else if (!is_group(here))
        stranger(path, here, value, off_here);
      else if (value.is_object())
        group(here, value, off_here);
      else if (!says_nothing(value))
        fail(Kind::usage, here, " is ", value.dump(), ", not a group of keys");
    }
  }

  /// A name of a person's own, or a mistake.
  void stranger(const std::string& group, const std::string& path, const Json& value, bool off) {
    const Key* any = key_of(group + ".*");
    if (any == nullptr) unknown(group, path);
    Key named = *any;
    named.path = names_.emplace_back(path);
    named_.push_back(named);
    leaf(named, value, off);
  }

  /// Switched off: its name and type are looked at, and that is all.
  void leaf(const Key& key, const Json& value, bool off) {
    if (says_nothing(value)) return;
    if (!fits(key.shape, value))
      fail(Kind::usage, key.path, " is ", value.dump(), ", not ", article(key.shape));
    if (off) return;
    if (key.treatment == Treatment::refused) return refuse(key, value);
    if (key.treatment == Treatment::no_effect) return idle(key, value);
    found_[key.path] = &value;
  }

  void refuse(const Key& key, const Json& value) {
    const std::string word = word_of(key.shape, value);
    for (const std::string_view one : split(key.harmless, '|'))
      if (!one.empty() && one == word) return;
    const bool bare = key.shape == ds::Shape::flag || value.is_structured();
    add(refused_, key.text, text(key.path, bare ? "" : " ", bare ? "" : word));
  }

  void idle(const Key& key, const Json& value) {
    if (value == false && key.path.ends_with(".enabled")) return;
    add(idle_, key.text, std::string(key.path));
  }

  using Reasons = std::vector<std::pair<std::string_view, std::vector<std::string>>>;
  static void add(Reasons& reasons, std::string_view why, std::string path) {
    auto at = std::ranges::find_if(reasons, [&](const auto& one) { return one.first == why; });
    if (at == reasons.end()) at = reasons.insert(at, {why, {}});
    at->second.push_back(std::move(path));
  }

  void take(const Key& key, const Json& value) {
    try {
      if (key.take != nullptr) return key.take(taking_, key, value);
      if (key.word.empty()) return taking_.set(key.path, key.field, {word_of(key.shape, value)});
      if (value == true) taking_.set(key.path, key.field, {std::string(key.word)});
    } catch (const Error& e) {
      const std::string_view what = e.what();
      const bool names = what.find(key.path) != std::string_view::npos;
      fail(e.kind(), names ? "" : text(key.path, ": "), what);
    }
  }

  [[noreturn]] void unknown(const std::string& group, const std::string& path) const {
    std::set<std::string> near;
    const std::string before = group.empty() ? "" : group + ".";
    for (const Key& key : keys_)
      if (key.path.starts_with(before)) near.emplace(key.path.substr(0, key.path.find('.', before.size())));
    const std::vector<std::string_view> views(near.begin(), near.end());
    fail(Kind::usage, path, " is no key of DeepSpeed's", did_you_mean(path, views));
  }

  const Json& root_;
  std::vector<Key> keys_;
  DeepSpeedSaid out_;
  ds::Taking taking_;
  std::map<std::string_view, const Json*> found_;
  std::deque<std::string> names_;  // that people gave to groups; keys look at them
  std::vector<Key> named_;
  Reasons idle_, refused_;
};

/// Refuses names that are given twice, as DeepSpeed does, and groups in groups without end.
class Strict {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > deepest) fail(Kind::data, "has more than ", deepest, " groups in each other");
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names_.back().insert(name).second) fail(Kind::data, "says ", name, " twice in one group");
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> names_;
};

Json parsed(std::string_view json) {
  const auto strict = std::make_shared<Strict>();  // the callback is copied, and so would be what it has seen
  try {
    return Json::parse(
        json,
        [strict](int depth, Json::parse_event_t event, Json& value) {
          return (*strict)(depth, event, value);
        },
        true, true);
  } catch (const Json::parse_error& e) {
    const std::string_view before = json.substr(0, std::min(e.byte, json.size()));
    fail(Kind::data, "is not JSON: line ", std::ranges::count(before, '\n') + 1);
  } catch (const Json::exception&) {
    fail(Kind::data, "holds a number that is too large");
  }
}

}  // namespace

DeepSpeedSaid read_deepspeed(Fields& fields, std::string_view json, const std::string& file) {
  Json root;
  try {
    root = parsed(json);
    if (!root.is_object()) fail(Kind::data, "is not a JSON object");
  } catch (const Error& e) {
    fail(e.kind(), file, " ", e.what());
  }
  try {
    return Walk(fields, root, file).result();
  } catch (const Error& e) {
    fail(e.kind(), file, ": ", e.what());
  }
}

DeepSpeedSaid read_deepspeed_file(Fields& fields, const std::string& file) {
  std::string content;
  try {
    content = read_file(file);
  } catch (const Error&) {
    fail(Kind::usage, "cannot read ", file);
  }
  return read_deepspeed(fields, content, file);
}

void deepspeed(Fields& fields, std::span<const std::string> words, Origin) {
  static_cast<void>(read_deepspeed_file(fields, words[0]));
}

}  // namespace weft::cli::dialect
