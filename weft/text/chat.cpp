#include "weft/text/chat.h"

#include <array>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/text/jinja/parse.h"
#include "weft/text/jinja/run.h"

namespace weft {

using Json = nlohmann::ordered_json;

namespace {

using jinja::Value;

constexpr int deepest = 64;

Value value_of(jinja::Work& work, const Json& json, int depth = 0) {
  if (depth > deepest) work.refuse("the conversation nests deeper than ", deepest, " levels");
  work.spend(1);
  if (json.is_null()) return jinja::None{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    work.refuse("the conversation's number ", json.get<std::uint64_t>(), " is beyond 64 bits");
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return work.text(json.get_ref<const std::string&>());
  if (json.is_array()) {
    jinja::Values items;
    for (const Json& one : json) items.push_back(value_of(work, one, depth + 1));
    return work.list(std::move(items));
  }
  std::vector<jinja::Pair> pairs;
  for (const auto& [key, one] : json.items())
    pairs.emplace_back(work.text(key), value_of(work, one, depth + 1));
  return work.dict(std::move(pairs));
}

// A message as transformers hands it in: what is null is not there, and what somebody thought before an
// answer stands under the names that templates ask for.
Json message_of(const Json& message) {
  Json thought, out = Json::object();
  for (const char* name : {"reasoning_content", "thinking", "reasoning"})
    if (thought.is_null() && message.contains(name)) thought = message[name];
  if (!thought.is_null()) out["thinking"] = thought;
  for (const auto& [key, value] : message.items())
    if (!value.is_null()) out[key] = value;
  if (!thought.is_null()) out["reasoning_content"] = thought;
  return out;
}

Json messages_of(const Json& messages, const std::string& name) {
  if (!messages.is_array() || messages.empty())
    fail(Kind::data, name, ": a conversation is a list of messages, not ",
         messages.empty() ? "an empty one" : messages.type_name());
  Json out = Json::array();
  for (const Json& message : messages) {
    if (!message.is_object())
      fail(Kind::data, name, ": a message is ", message.type_name(), ", expected an object");
    out.push_back(message_of(message));
  }
  return out;
}

}  // namespace

ChatTemplate::ChatTemplate(ChatSource source)
    : source_(std::move(source)),
      plain_(std::make_shared<const jinja::Template>(jinja::parsed(source_.jinja, source_.name))),
      with_tools_(source_.with_tools.empty() ? plain_
                                             : std::make_shared<const jinja::Template>(
                                                   jinja::parsed(source_.with_tools, source_.name))) {}

ChatText ChatTemplate::write(const Json& messages, const ChatOptions& options) const {
  jinja::Work work(source_.name, options.work, options.now);
  jinja::Scope given;
  for (const auto& [name, token] : source_.tokens) given.set(name, work.text(token));
  given.set("messages", value_of(work, messages_of(messages, source_.name)));
  given.set("tools", jinja::None{});
  given.set("documents", jinja::None{});
  given.set("add_generation_prompt", options.answer_next);
  if (options.variables != nullptr && !options.variables->is_null()) {
    if (!options.variables->is_object())
      fail(Kind::data, source_.name, ": what a template may ask for is an object, not ",
           options.variables->type_name());
    for (const auto& [name, value] : options.variables->items()) {
      if (name == "messages" || name == "add_generation_prompt")
        fail(Kind::data, source_.name, ": '", name, "' is the conversation's own");
      given.set(name, value_of(work, value));
    }
  }
  const bool tools = options.variables != nullptr && options.variables->is_object() &&
                     options.variables->contains("tools") && !options.variables->at("tools").is_null();
  jinja::Run run(work, std::move(given.names));
  run.whole(tools ? *with_tools_ : *plain_);
  return {.text = std::move(run.text()), .answers = std::move(run.answers())};
}

}  // namespace weft
