// weft tokenizer chat: what a model reads of a conversation, as text and as numbers.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/cli/chat.h"
#include "weft/cli/tokenizer_lines.h"
#include "weft/text/open.h"
#include "weft/text/tokenizer.h"

namespace weft::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ChatOptionsGiven {
  std::string tokenizer;
  bool answer_next = false, jsonl = false;
  ChatFlags chat;
};

template <class Visitor>
void describe(Visitor& v, ChatOptionsGiven& o) {
  v("tokenizer", o.tokenizer, "a directory or a tokenizer.json with its files beside it");
  v("answer_next", o.answer_next, "ends the text where the model's answer begins");
  v("jsonl", o.jsonl,
    "writes a line of JSON a conversation: text, ids (with a tokenizer) and answers, the bytes of the text "
    "that {% generation %} marks");
  describe(v, o.chat);
}

Json line_of(const ChatText& written, const Tokenizer* tokenizer) {
  Json line{{"text", written.text}};
  if (tokenizer != nullptr) line["ids"] = tokenizer->encode(written.text);
  line["answers"] = Json::array();
  for (const ByteRange& answer : written.answers) line["answers"].push_back({answer.begin, answer.end});
  return line;
}

}  // namespace

int chat_tokenizer(Args args) {
  ChatOptionsGiven o;
  Fields fields(o);
  std::vector<std::string> files = read_flags(fields, args);
  if (o.tokenizer.empty() && o.chat.chat_template.empty())
    fail(Kind::usage, "tokenizer chat: expected --tokenizer or --chat-template");
  TokenizerOptions named;
  if (!o.tokenizer.empty()) named = tokenizer_named(o.tokenizer);
  const ChatTemplate chat = chat_template_for(o.chat, named, "tokenizer chat");
  std::unique_ptr<const Tokenizer> tokenizer;
  // The template writes what a tokenizer.json would put around a text.
  named.tokenizer_hf_no_include_special_tokens = true;
  if (o.jsonl && !o.tokenizer.empty()) tokenizer = open_tokenizer(named);
  if (files.empty()) files.emplace_back("-");
  Output out;
  for (const std::string& file : files) {
    each_line(file, [&](const LinePlace& place, std::string_view line) {
      const Conversation said = conversation_in(line, place, o.chat);
      const ChatText written = located(place, [&] {
        return chat.write(said.messages, {.answer_next = o.answer_next, .variables = &said.variables});
      });
      out.raw(o.jsonl ? line_of(written, tokenizer.get()).dump() : written.text);
      out.raw("\n");
    });
  }
  return static_cast<int>(Exit::done);
}

Topic chat_topic() {
  ChatOptionsGiven options;
  const Fields fields(options);
  Topic out{"chat", {}};
  for (const auto& field : fields.all())
    out.options.push_back({flag_of(*field), value_name(*field), help_with_default(*field)});
  return out;
}

}  // namespace weft::cli
