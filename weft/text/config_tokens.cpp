#include "weft/text/config_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/error.h"
#include "weft/text/json.h"

namespace weft {

namespace {

using nlohmann::json;

constexpr const char* config_name = "tokenizer_config.json";
constexpr const char* map_name = "special_tokens_map.json";
constexpr const char* added_name = "added_tokens.json";

// In the order in which transformers adds those that are missing.
constexpr std::array<std::string_view, 7> names{"bos", "eos", "unk", "sep", "pad", "cls", "mask"};

const json* entry(const json& object, const std::string& key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

json object_in(const std::string& text, const char* file) {
  if (text.empty()) return json::object();
  json read = parse_json(text, file);
  if (!read.is_object()) fail(Kind::data, file, ": expected an object");
  return read;
}

bool spells(const std::vector<AddedToken>& tokens, const std::string& content) {
  return std::ranges::find(tokens, content, &AddedToken::content) != tokens.end();
}

// "</s>", or an object with its content and how it is looked for; nothing for what is no token.
std::optional<AddedToken> token_in(const json& value, const char* file) {
  if (value.is_string()) return AddedToken{.content = value.get<std::string>()};
  if (!value.is_object() || !value.contains("content")) return std::nullopt;
  const bool special = flag_field(value, "special", false, file);
  return AddedToken{.content = text_field(value, "content", file),
                    .special = special,
                    .single_word = flag_field(value, "single_word", false, file),
                    .lstrip = flag_field(value, "lstrip", false, file),
                    .rstrip = flag_field(value, "rstrip", false, file),
                    .normalized = flag_field(value, "normalized", !special, file)};
}

std::vector<AddedToken> in_order(const std::map<std::int64_t, AddedToken>& tokens) {
  std::vector<AddedToken> out;
  for (const auto& [at, token] : tokens) out.push_back(token);
  return out;
}

// {"7": {"content": "<tag>", …}}, in the order of the numbers.
std::vector<AddedToken> numbered_in(const json& list) {
  std::map<std::int64_t, AddedToken> tokens;
  for (const auto& [number, value] : list.items()) {
    std::int64_t at = 0;
    const char* end = number.data() + number.size();
    const auto token = token_in(value, config_name);
    if (std::from_chars(number.data(), end, at).ptr != end || number.empty() || !token)
      fail(Kind::data, config_name, ": added_tokens_decoder has '", number,
           "', expected numbers, each with a token's content");
    tokens.insert_or_assign(at, *token);
  }
  return in_order(tokens);
}

// {"<tag>": 7}: a token of no name is looked for in normalized text.
std::vector<AddedToken> old_numbered_in(const json& list, const NamedTokens& beside) {
  std::map<std::int64_t, AddedToken> tokens;
  for (const auto& [content, number] : list.items()) {
    if (!number.is_number_integer())
      fail(Kind::data, added_name, ": '", content, "' has ", number.dump(), " for a number");
    const bool special = spells(beside.said, content) || spells(beside.further, content);
    tokens.insert_or_assign(number.get<std::int64_t>(),
                            AddedToken{.content = content, .special = special, .normalized = !special});
  }
  return in_order(tokens);
}

// The further ones of a file: a list, or names of a model's own with their tokens.
void read_extra(const json& settings, const char* file, std::vector<AddedToken>& said) {
  const json* extra = entry(settings, "extra_special_tokens");
  if (extra == nullptr || extra->empty()) extra = entry(settings, "additional_special_tokens");
  if (extra == nullptr) return;
  if (!extra->is_array() && !extra->is_object())
    fail(Kind::data, file, ": its further special tokens are ",
         extra->dump(-1, ' ', false, json::error_handler_t::replace), ", expected a list");
  for (const json& value : *extra)
    if (auto token = token_in(value, file)) said.push_back(std::move(*token));
}

// "image_token", but not "pad_token".
bool names_a_models_own(const std::string& key) {
  constexpr std::string_view end = "_token";
  return key.ends_with(end) &&
         std::ranges::find(names, key.substr(0, key.size() - end.size())) == names.end();
}

void read_named(const json& settings, const char* file, NamedTokens& out) {
  for (const std::string_view name : names) {
    const json* value = entry(settings, std::string(name) + "_token");
    auto token = value == nullptr ? std::nullopt : token_in(*value, file);
    if (!token) continue;
    token->special = true;
    out.named[std::string(name)] = token->content;
    out.said.push_back(std::move(*token));
  }
  for (const auto& [key, value] : settings.items())
    if (names_a_models_own(key) && value.is_string()) out.said.push_back(*token_in(value, file));
  read_extra(settings, file, out.further);
}

// The added tokens of a pipeline: some vocabularies have thousands.
class Added {
 public:
  explicit Added(PipelineParts& parts) : parts_(parts) {
    for (std::size_t i = 0; i < parts.added.size(); ++i) places_.emplace(parts.added[i].content, i);
  }
  bool spells(const std::string& content) const { return places_.contains(content); }

  // Where it is known it is looked for as is said here; special it stays.
  void take(AddedToken token) {
    if (token.content.empty()) return;
    const auto [at, fresh] = places_.emplace(token.content, parts_.added.size());
    if (fresh) return add(std::move(token));
    AddedToken& known = parts_.added[at->second];
    token.id = known.id;
    token.special = token.special || known.special;
    known = std::move(token);
  }

 private:
  void add(AddedToken token) {
    if (!parts_.vocabulary.id(token.content))
      parts_.vocabulary.set(token.content, parts_.vocabulary.size(), config_name);
    token.id = *parts_.vocabulary.id(token.content);
    parts_.added.push_back(std::move(token));
  }

  PipelineParts& parts_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace

NamedTokens read_named_tokens(const HuggingFaceFiles& files) {
  json config = object_in(files.config, config_name);
  NamedTokens out;
  out.split_special = flag_field(config, "split_special_tokens", false, config_name);
  if (const json* numbered = entry(config, "added_tokens_decoder")) {
    if (!numbered->is_object()) fail(Kind::data, config_name, ": added_tokens_decoder is no object");
    out.numbered = numbered_in(*numbered);
    read_named(config, config_name, out);
    return out;
  }
  config.update(object_in(files.special, map_name));
  read_named(config, files.special.empty() ? config_name : map_name, out);
  out.all_numbered = true;
  out.numbered = old_numbered_in(object_in(files.added, added_name), out);
  return out;
}

void add_named(const NamedTokens& tokens, PipelineParts& parts) {
  parts.split_special = tokens.split_special;
  if (tokens.all_numbered)
    for (AddedToken& token : parts.added) token.special = token.special || spells(tokens.said, token.content);
  Added added(parts);
  for (AddedToken token : tokens.numbered) {
    token.special = token.special || spells(tokens.said, token.content);
    added.take(std::move(token));
  }
  const Added before = added;
  std::vector<AddedToken> seen;
  for (const auto* list : {&tokens.said, &tokens.further}) {
    for (const AddedToken& token : *list) {
      if (before.spells(token.content) || std::ranges::find(seen, token) != seen.end()) continue;
      seen.push_back(token);
      added.take(token);
    }
  }
}

}  // namespace weft
