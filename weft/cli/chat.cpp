#include "weft/cli/chat.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/data/conversation.h"

namespace weft::cli {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

Json parsed(std::string_view text, const std::string& who) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail(Kind::data, who, " is not JSON: ", error.what());
  }
}

// Where a tokenizer's files lie.
fs::path place_of(const TokenizerOptions& tokenizer) {
  return tokenizer.tokenizer_model.empty() ? tokenizer.vocab_file : tokenizer.tokenizer_model;
}

void add_kwargs(Conversation& to, const ChatFlags& flags) {
  if (flags.chat_template_kwargs.empty()) return;
  const Json more = parsed(flags.chat_template_kwargs, "--chat-template-kwargs");
  if (!more.is_object())
    fail(Kind::usage, "--chat-template-kwargs: expected a JSON object, not ", more.type_name());
  for (const auto& [key, value] : more.items()) to.variables[key] = value;
}

}  // namespace

ChatTemplate chat_template_for(const ChatFlags& flags, const TokenizerOptions& tokenizer,
                               std::string_view verb) {
  const fs::path place = place_of(tokenizer);
  if (flags.chat_template.empty()) {
    auto own = place.empty() ? std::nullopt : chat_template_of(place);
    if (!own)
      fail(Kind::usage, verb, ": there is no chat template beside ",
           place.empty() ? "the tokenizer" : place.string(),
           " (chat_template.jinja, or 'chat_template' in tokenizer_config.json); give one with "
           "--chat-template");
    return *own;
  }
  ChatSource source;
  if (fs::is_regular_file(flags.chat_template)) {
    source = {.jinja = read_file(flags.chat_template), .name = flags.chat_template};
  } else {
    const auto all = megatron_chat_templates();
    const auto known = std::ranges::find(all, flags.chat_template, &NamedChatTemplate::name);
    if (known == all.end() && flags.chat_template.find_first_of("./") != std::string::npos)
      fail(Kind::usage, verb, ": --chat-template: there is no file ", flags.chat_template);
    source = megatron_chat_template(flags.chat_template).source();
  }
  if (!place.empty()) source.tokens = chat_tokens_of(place);
  return ChatTemplate(std::move(source));
}

Conversation conversation_in(std::string_view line, const LinePlace& place, const ChatFlags& flags) {
  Json all = parsed(line, text(place.file, ": line ", place.line));
  Conversation out;
  if (all.is_array()) {
    out.messages = std::move(all);
  } else if (all.is_object() && all.contains("messages")) {
    out.variables = located(place, [&] { return data::beside_messages_of(all); });
    out.messages = std::move(all["messages"]);
  } else {
    fail(Kind::data, place.file, ": line ", place.line,
         " holds no conversation: expected a list of messages, or an object with 'messages'");
  }
  add_kwargs(out, flags);
  return out;
}

Conversation conversation_of(const std::string& system, const std::string& user, const ChatFlags& flags) {
  Conversation out;
  if (!system.empty()) out.messages.push_back({{"role", "system"}, {"content", system}});
  out.messages.push_back({{"role", "user"}, {"content", user}});
  add_kwargs(out, flags);
  return out;
}

}  // namespace weft::cli
