// Chat templates: what they are handed, and where they come from.
#include "weft/text/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temporary.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using support::TemporaryDirectory;
using ::testing::ThrowsMessage;
using Json = nlohmann::ordered_json;

const Json greeting = Json::parse(R"([{"role": "user", "content": " Hi "}])");

ChatTemplate chat_of(const std::string& jinja) { return ChatTemplate({.jinja = jinja, .name = "t"}); }

TEST(Chat, a_template_is_handed_what_transformers_hands_it) {
  const ChatTemplate chat = chat_of(
      "{{ tools }} {{ documents }} {{ add_generation_prompt }} {{ messages | length }} {{ bos_token is "
      "defined }} {{ x }}");
  EXPECT_EQ(chat.write(greeting).text, "None None False 1 False ");
  const Json more = Json::parse(R"({"tools": [1], "x": {"a": 1.0}})");
  EXPECT_EQ(chat.write(greeting, {.answer_next = true, .variables = &more}).text,
            "[1] None True 1 False {'a': 1.0}");
}

TEST(Chat, what_is_null_in_a_message_is_not_there) {
  const Json said =
      Json::parse(R"([{"role": "assistant", "content": null, "tool_calls": null, "name": {"a": null}}])");
  EXPECT_EQ(chat_of("{{ messages[0] }}").write(said).text, "{'role': 'assistant', 'name': {'a': None}}");
}

TEST(Chat, thoughts_go_by_every_name_that_templates_ask_for) {
  const auto said = [](const char* name) {
    return Json::array({Json{{"role", "assistant"}, {name, "Hm."}}});
  };
  const ChatTemplate chat =
      chat_of("{{ messages[0].thinking }}{{ messages[0].reasoning_content }}{{ messages[0].reasoning }}");
  EXPECT_EQ(chat.write(said("reasoning_content")).text, "Hm.Hm.");
  EXPECT_EQ(chat.write(said("thinking")).text, "Hm.Hm.");
  EXPECT_EQ(chat.write(said("reasoning")).text, "Hm.Hm.Hm.");
}

TEST(Chat, conversations_that_are_none_are_refused) {
  const auto refused = [](const char* json) {
    return [said = Json::parse(json)] { (void)chat_of("x").write(said); };
  };
  EXPECT_THAT(refused("[]"),
              ThrowsMessage<Error>("t: a conversation is a list of messages, not an empty one"));
  EXPECT_THAT(refused("{\"a\": 1}"),
              ThrowsMessage<Error>("t: a conversation is a list of messages, not object"));
  EXPECT_THAT(refused("[1]"), ThrowsMessage<Error>("t: a message is number, expected an object"));
  EXPECT_THAT(
      refused("[{\"a\": 18446744073709551615}]"),
      ThrowsMessage<Error>("t: line 1: the conversation's number 18446744073709551615 is beyond 64 bits"));
  std::string deep = "[{\"a\": " + std::string(70, '[') + std::string(70, ']') + "}]";
  EXPECT_THAT(refused(deep.c_str()),
              ThrowsMessage<Error>("t: line 1: the conversation nests deeper than 64 levels"));
  const Json more{{"messages", 1}}, none = Json::array({1});
  EXPECT_THAT([&] { (void)chat_of("x").write(greeting, {.variables = &more}); },
              ThrowsMessage<Error>("t: 'messages' is the conversation's own"));
  EXPECT_THAT([&] { (void)chat_of("x").write(greeting, {.variables = &none}); },
              ThrowsMessage<Error>("t: what a template may ask for is an object, not array"));
}

struct TokenizerFolder {
  TemporaryDirectory folder;
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder / name) << text; }
  [[nodiscard]] std::string text(const Json* variables = nullptr) const {
    return chat_template_of(folder.path())->write(greeting, {.variables = variables}).text;
  }
};

TEST(ChatFiles, a_template_and_its_tokens_lie_beside_a_tokenizer) {
  const TokenizerFolder files;
  EXPECT_FALSE(chat_template_of(files.folder.path()));
  files.write(
      "tokenizer_config.json",
      R"({"chat_template": "{{ bos_token }}c{{ eos_token }}", "bos_token": {"content": "<s>"}, "eos_token": null})");
  EXPECT_EQ(files.text(), "<s>c");
  files.write("special_tokens_map.json",
              R"({"bos_token": "<b>", "eos_token": {"content": "</s>", "lstrip": false}})");
  EXPECT_EQ(files.text(), "<s>c</s>");
  files.write("chat_template.jinja", "file{{ bos_token }}\n");
  EXPECT_EQ(files.text(), "file<s>");
  EXPECT_EQ(chat_template_of(files.folder / "tokenizer.json")->source().name,
            (files.folder / "chat_template.jinja").string());
}

TEST(ChatFiles, of_several_templates_the_default_is_taken_and_another_for_tools) {
  const TokenizerFolder files;
  files.write("tokenizer_config.json",
              R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"},
                                    {"name": "tool_use", "template": "t{{ tools | length }}"}]})");
  const Json tools{{"tools", {1, 2}}}, none{{"tools", nullptr}};
  EXPECT_EQ(files.text(), "d");
  EXPECT_EQ(files.text(&none), "d");
  EXPECT_EQ(files.text(&tools), "t2");
}

TEST(ChatFiles, what_is_no_template_is_named_with_its_file) {
  const TokenizerFolder files;
  const std::string config = (files.folder / "tokenizer_config.json").string();
  const auto refused = [&](const char* json) {
    files.write("tokenizer_config.json", json);
    return [&] { (void)files.text(); };
  };
  EXPECT_THAT(refused(R"({"chat_template": 1})"),
              ThrowsMessage<Error>(config + ": 'chat_template' is number, expected a text or a list"));
  EXPECT_THAT(refused(R"({"chat_template": [{"name": "rag", "template": "r"}]})"),
              ThrowsMessage<Error>(config + ": none of the chat templates is named 'default'"));
  EXPECT_THAT(refused("[]"), ThrowsMessage<Error>(config + ": is array, expected an object"));
  EXPECT_THAT(refused(R"({"chat_template": "{{ x"})"),
              ThrowsMessage<Error>(config + ": line 1: a tag has no end }}"));
}

TEST(ChatFiles, megatrons_templates_have_their_names) {
  const Json said =
      Json::parse(R"([{"role": "system", "content": " s /no_think "}, {"role": "user", "content": "u\n"},
                                    {"role": "assistant", "content": " a "}])");
  EXPECT_EQ(megatron_chat_template("identity").write(said).text, " s /no_think u\n a ");
  EXPECT_EQ(megatron_chat_template("nemotron-h-aligned").write(said).text,
            "<SPECIAL_10>System\ns /no_think\n<SPECIAL_11>User\nu\n<SPECIAL_11>Assistant\na\n");
  EXPECT_EQ(megatron_chat_template("nemotron-nano-v2").write(said).text,
            "<SPECIAL_10>System\ns\n<SPECIAL_11>User\nu\n<SPECIAL_11>Assistant\na\n<SPECIAL_12>\n");
  EXPECT_THAT([] { (void)megatron_chat_template("nemotron-nano"); },
              ThrowsMessage<Error>("chat template: 'nemotron-nano' is none of nemotron-h-aligned, "
                                   "nemotron-nano-v2, identity, did you mean nemotron-nano-v2"));
}

}  // namespace
}  // namespace weft
