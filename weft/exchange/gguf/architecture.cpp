// Keys and settings, whatever the architecture.
#include "weft/exchange/gguf/architecture.h"

#include "weft/base/error.h"

namespace weft::exchange::gguf {

std::optional<std::int64_t> Keys::whole(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->as<std::int64_t>()) return *number;
  refuse(name, "expected a whole number");
}

std::optional<double> Keys::real(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->as<double>()) return *number;
  refuse(name, "expected an f32");
}

std::optional<std::string> Keys::word(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* word = value->as<std::string>()) return *word;
  refuse(name, "expected a text");
}

std::optional<std::vector<std::int64_t>> Keys::list(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr || value->as<std::int64_t>() != nullptr) return std::nullopt;
  if (const auto* numbers = value->as<std::vector<std::int64_t>>()) return *numbers;
  refuse(name, "expected a list of whole numbers");
}

std::int64_t Keys::must_be_whole(std::string_view name) const {
  if (const auto found = whole(name)) return *found;
  refuse(name, "expected a whole number");
}

void Keys::must_be(std::string_view name, std::int64_t only) const {
  if (whole(name).value_or(only) != only) refuse(name, text("weft can only compute ", only));
}

void Keys::refuse(std::string_view name, std::string_view expected) const {
  const Value* value = find(name);
  std::string found = "missing";
  if (value != nullptr) found = what_is(value->type);
  if (value != nullptr && value->as<std::int64_t>() != nullptr) found = text(*value->as<std::int64_t>());
  if (value != nullptr && value->as<double>() != nullptr) found = text(*value->as<double>());
  if (value != nullptr && value->as<std::string>() != nullptr) found = *value->as<std::string>();
  fail(Kind::data, contents_.who, ": ", key(name), " is ", found.substr(0, 80), ", ", expected);
}

void write_settings(const Architecture& architecture, const Json& theirs, Values& to) {
  KeysToWrite keys(to, std::string(architecture.name));
  for (const auto& list : architecture.settings)
    for (const Setting& one : list) {
      const auto found = theirs.find(std::string(one.theirs));
      if (found == theirs.end() || found->is_null()) continue;
      keys.add(one.key, one.whole ? whole(found->get<std::int64_t>()) : real(found->get<double>()));
    }
  keys.add("vocab_size", whole(theirs.at("vocab_size").get<std::int64_t>()));
  architecture.write(theirs, keys);
}

namespace {

void read_setting(const Keys& keys, const Setting& one, Json& to) {
  if (!one.whole) {
    const auto found = keys.real(one.key);
    if (!found) keys.refuse(one.key, "expected an f32");
    to = *found;
  } else if (const auto found = keys.whole(one.key)) {
    to = *found;
  } else {
    to = keys.must_be_whole(one.otherwise.empty() ? one.key : one.otherwise);
  }
}

}  // namespace

Json read_settings(const Architecture& architecture, const Contents& contents) {
  const Keys keys(contents, std::string(architecture.name));
  Json out;
  out["model_type"] = architecture.types.front();
  for (const auto& list : architecture.settings)
    for (const Setting& one : list) read_setting(keys, one, out[std::string(one.theirs)]);
  const std::vector<std::int64_t>* words = contents.sizes("token_embd.weight");
  if (words == nullptr || words->size() != 2)
    fail(Kind::data, contents.who, ": token_embd.weight is ",
         words == nullptr ? text("missing") : text("of ", words->size(), " dimensions"),
         ", expected a matrix");
  out["vocab_size"] = words->back();
  out["tie_word_embeddings"] = !contents.has("output.weight");
  architecture.read(keys, out);
  return out;
}

}  // namespace weft::exchange::gguf
